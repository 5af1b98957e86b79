"""Why a nominal time was not sent: the words of the ledger, of `explain`, of the admin and of the commands."""

from __future__ import annotations

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why a nominal time was not sent. The value is the code in the ledger's column `reason`."""

    #: A sentence for people, without its capital letter and its full stop.
    sentence: str
    #: False: if the change that caused the skip is taken back, the same nominal time may still be sent. True: the
    #: schedule never sends it; a person can still have it made up for by a requested run.
    final: bool

    def __new__(cls, code: str, sentence: str, final: bool) -> Self:
        """The member with this code, sentence and finality."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.sentence = sentence
        member.final = final
        return member

    CANCELLED = "cancelled", "it was cancelled, or its task was deleted", True
    COALESCED = "coalesced", "it was missed, and a later run stands for it", True
    DISABLED = "disabled", "the task was disabled", False
    EDITED = "edited", "the task was edited before it was sent", False
    ELSEWHERE = "elsewhere", "another beat was at work", True
    EXPIRED = "expired", "it was missed, and the task had ended before it could be made up for", True
    HANDED_BACK = "handed_back", "the task was handed back to another scheduler", False
    MISSED = "missed", "it was missed and not made up for", True
    OVERLAP = "overlap", "the run of an earlier time was still open", True
    PAUSED = "paused", "the task was paused", True
    PRUNED = "pruned", "this time had been decided before, and its record was pruned", True
    QUARANTINED = "quarantined", "the task was quarantined", False
    REFUSED = "refused", "it could not be sent as it is", True

    @classmethod
    def sentence_of(cls, code: str) -> str:
        """The sentence of a code read from the ledger; the code itself if a newer version wrote it."""
        member = cls._value2member_map_.get(code)
        return member.sentence if isinstance(member, cls) else code
