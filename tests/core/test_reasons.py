"""One vocabulary of reasons: the page and the admin have each of them, and no more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from onebeat.admin.outcomes import REASONS
from onebeat.core.reasons import Reason

PAGE = Path(__file__).parents[2] / "docs" / "reasons.md"


def test_the_page_has_a_row_for_each_reason() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (yes|no) \|$", PAGE.read_text(), re.MULTILINE)
    assert rows == [(reason.value, reason.sentence, "yes" if reason.final else "no") for reason in Reason]


def test_the_admin_has_a_word_for_each_reason() -> None:
    assert set(REASONS) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_a_code_of_the_ledger_leads_to_its_sentence(reason: Reason) -> None:
    assert len(reason) <= 20, "as long as the column"
    assert Reason.sentence_of(reason.value) == reason.sentence
    assert Reason(reason.value) is reason


def test_a_code_of_a_newer_version_is_shown_as_it_is() -> None:
    assert Reason.sentence_of("calendar") == "calendar"
