"""The newest occurrences of a task as a row of marks, and the last of them in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from onebeat.admin.words import shown, span
from onebeat.core.reasons import Reason
from onebeat.models import Occurrence

if TYPE_CHECKING:
    from onebeat.admin.words import Text

STATES = {
    "claimed": _("being sent"),
    "sent": _("sent"),
    "started": _("running"),
    "succeeded": _("succeeded"),
    "failed": _("failed"),
    "skipped": _("skipped"),
}
REASONS: dict[str, Text] = {
    Reason.CANCELLED: _("cancelled"),
    Reason.COALESCED: _("coalesced into a later run"),
    Reason.DISABLED: _("disabled"),
    Reason.EDITED: _("schedule edited"),
    Reason.ELSEWHERE: _("another beat was at work"),
    Reason.EXPIRED: _("expired"),
    Reason.HANDED_BACK: _("handed back to another scheduler"),
    Reason.MISSED: _("missed"),
    Reason.OVERLAP: _("an earlier run was still open"),
    Reason.PAUSED: _("paused"),
    Reason.PRUNED: _("decided before"),
    Reason.QUARANTINED: _("quarantined"),
    Reason.REFUSED: _("could not be sent as it is"),
}
#: Each mark is told by its height and place as well as by its colour.
_TALL, _LOW = (2, 18), (14, 6)
_STEP, _WIDTH, _HEIGHT = 4, 3.5, 20
#: A run that left within this time was on time.
_ON_TIME = timedelta(seconds=1)


def state_word(row: Occurrence) -> str:
    """What became of an occurrence, with the reason if it was skipped."""
    word = str(STATES.get(row.state, row.state))
    return f"{word}: {REASONS.get(row.reason, row.reason)}" if row.reason else word


def late_words(row: Occurrence) -> str:
    """`3 s late`, or nothing for a run that left in time."""
    late = row.sent_at - row.due_at if row.sent_at is not None else timedelta(0)
    return "" if late < _ON_TIME else gettext("%(span)s late") % {"span": span(late)}


def marks(found: Sequence[Occurrence]) -> SafeString:
    """An inline SVG, the oldest on the left: tall bars were sent, low ones skipped, a hollow one is under way, a
    failed one stands on a line and has a gap.
    """
    if not found:
        return format_html('<span class="ob-quiet">{}</span>', gettext("no run yet"))
    counts = Counter(str(STATES.get(row.state, row.state)) for row in found)
    label = ", ".join(f"{count} {word}" for word, count in counts.items())
    bars = format_html_join("", "{}", ((_bar(number, row),) for number, row in enumerate(found)))
    width = len(found) * _STEP
    return format_html(
        '<svg class="ob-marks" role="img" aria-label="{}" width="{}" height="{}" viewBox="0 0 {} {}">{}</svg>',
        gettext("Last %(count)s: %(what)s") % {"count": len(found), "what": label},
        width, _HEIGHT, width, _HEIGHT, bars,
    )  # fmt: skip


def _bar(number: int, row: Occurrence) -> SafeString:
    top, height = _LOW if row.state == "skipped" else _TALL
    late = late_words(row)
    title = f"{shown(row.due_at)}: {state_word(row)}" + (f", {late}" if late else "")
    left = number * _STEP
    gap = (
        format_html('<path class="ob-gap" d="M{} 9h{}v3h-{}z"/>', left, _WIDTH, _WIDTH) if row.state == "failed" else ""
    )
    return format_html(
        '<g><title>{}</title><rect class="ob-mark ob-{}" x="{}" y="{}" width="{}" height="{}" rx="1"/>{}</g>',
        title, row.state, left + 0.5, top, _WIDTH - 1, height, gap,
    )  # fmt: skip


def last(found: Sequence[Occurrence]) -> Occurrence | None:
    """The newest occurrence that left, or failing that was decided about."""
    return next((each for each in reversed(found) if each.state != "skipped"), found[-1] if found else None)


def in_words(found: Sequence[Occurrence]) -> SafeString:
    """What became of the last one, and how late it was."""
    newest = last(found)
    if newest is None:
        return SafeString("")
    late = late_words(newest)
    return format_html(
        '<div class="ob-small"><span class="ob-badge ob-{}">{}</span>{}</div>',
        newest.state,
        state_word(newest),
        format_html(' <span class="ob-quiet">{}</span>', late) if late else "",
    )
