"""One grammar: what it takes, what it refuses, and the one text it gives back."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from onebeat.core.recurrence import Cron, InvalidSchedule, canonical_field, check_crontab
from onebeat.core.recurrence.fields import KINDS, read
from tests.core.vectors import vectors

GRAMMAR = vectors("celery_grammar")

#: What Celery reads only in part, or by accident: no new row may hold it.
REFUSED = {
    ("minute", "jan"), ("minute", "+5"), ("minute", "1_0"), ("minute", "*/5-20"), ("minute", "*/5 x"),
    ("minute", "1-5/2/3"), ("minute", "\u0663"), ("hour", "monday"), ("hour", "mon-fri"), ("day_of_month", "mon"),
    ("month_of_year", "mon"), ("day_of_week", "mon/2"), ("day_of_week", "1-5#2"), ("day_of_week", "1-5 7"),
    ("day_of_week", "monkey"), ("day_of_week", "mar"), ("day_of_week", "may"),
}  # fmt: skip
#: What Celery refuses and the grammar adds; and `fri#2`, which Celery takes for every Friday.
ADDED = {
    ("day_of_month", "L"): "L",
    ("day_of_week", "7"): "0",
    ("day_of_week", "5-7"): "5-0",
    ("day_of_week", "0-7"): "*",
    ("day_of_week", "7-1"): "0-1",
    ("day_of_week", "mon, wed"): "1,3",
    ("day_of_week", "fri#2"): "5#2",
    ("day_of_week", "5#2"): "5#2",
}


def values(field: str, text: object) -> list[int]:
    mask = read(field, text).mask
    return [number for number in range(60) if mask >> number & 1]


@pytest.mark.parametrize("vector", GRAMMAR, ids=[f"{v['field']} {v['expr']!r}" for v in GRAMMAR])
def test_a_field_means_what_it_means_to_celery(vector: dict[str, Any]) -> None:
    field, text = vector["field"], vector["expr"]
    if (field, text) in ADDED:
        assert canonical_field(field, text) == ADDED[field, text]
    elif "error" in vector or (field, text) in REFUSED:
        with pytest.raises(InvalidSchedule) as caught:
            canonical_field(field, text)
        assert caught.value.field == field
    else:
        assert values(field, text) == vector["values"]
        assert values(field, canonical_field(field, text)) == vector["values"]


@pytest.mark.parametrize(
    ("field", "value", "canonical"),
    [
        ("day_of_week", [1, 2, 3], "1,2,3"),
        ("day_of_week", {3, 1, 2}, "1,2,3"),
        ("day_of_week", (n for n in (3, 1)), "1,3"),
        ("day_of_week", ["mon", "fri"], "1,5"),
        ("day_of_week", range(1, 4), "1,2,3"),
        ("day_of_week", 7, "0"),
        ("day_of_week", "SUNDAY", "0"),
        ("day_of_week", "mon-fri", "1-5"),
        ("day_of_week", "fri-mon", "5-1"),
        ("day_of_week", "6-1", "6-1"),
        ("day_of_week", "0-6", "*"),
        ("day_of_week", "mon-sun", "*"),
        ("day_of_week", "1-7/2", "1-0/2"),
        ("day_of_week", "fri#l, mon#2,7#1", "0#1,1#2,5#L"),
        ("day_of_week", "5,fri#2", "5"),
        ("day_of_month", "l, 15", "15,L"),
        ("day_of_month", "1-31", "*"),
        ("month_of_year", "sept", "9"),
        ("month_of_year", "Nov - feb".replace(" ", ""), "11-2"),
        ("minute", 5, "5"),
        ("minute", "05", "5"),
        ("minute", " 1, 2 ", "1,2"),
        ("minute", "1,1,2", "1,2"),
        ("minute", "30,0", "0,30"),
        ("minute", "*/1", "*"),
        ("minute", "*/07", "*/7"),
        ("minute", "*,5", "*"),
        ("minute", "5,*", "0-59"),
        ("minute", "5,*/60", "0,5"),
        ("minute", "*/5,0-59", "*"),
        ("minute", "0-59", "0-59"),
        ("minute", "5-4", "0-59"),
        ("minute", "5-4/2", "5-4/2"),
        ("minute", "5-5/2", "5"),
        ("minute", "0,15,30,45", "0,15,30,45"),
        ("minute", "10-20,12", "10-20"),
        ("minute", [0, "*/20"], "*/20"),
        ("hour", "*/24", "*/24"),
        ("hour", "22-2", "22-2"),
    ],
)
def test_canonical_text(field: str, value: object, canonical: str) -> None:
    assert canonical_field(field, value) == canonical


def test_a_text_that_is_tidy_stays_as_it_was_written() -> None:
    for text in ("*", "*/5", "*/7", "0-30/10", "1-5", "0,15,30,45", "8-17/3", "55-5", "3,10-20"):
        assert canonical_field("minute", text) == text


@pytest.mark.parametrize("value", [None, True, 1.5, b"5", [], "", [None], [[]], "1,", ",", object()])
def test_no_value_is_guessed(value: object) -> None:
    with pytest.raises(InvalidSchedule, match=r"^minute: "):
        canonical_field("minute", value)


def test_the_error_names_the_field_the_token_and_what_is_accepted() -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Cron(minute="5,61")
    assert (caught.value.field, caught.value.token) == ("minute", "61")
    assert str(caught.value) == (
        "minute: '61' is not accepted: use numbers 0 to 59, *, ranges a-b, steps */n or a-b/n, lists a,b"
    )
    with pytest.raises(InvalidSchedule, match=r"names such as mon.*mon#2 for the second Monday"):
        Cron(day_of_week="funday")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_the_error_is_one_short_line_whatever_the_text() -> None:
    with pytest.raises(InvalidSchedule) as caught:
        Cron(minute="x\n" * 500)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 250


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        (("0", "0", "31", "2", "*"), "day_of_month"),
        (("0", "0", "31", "4,6,9,11", "*"), "day_of_month"),
        (("0", "0", "30-31", "feb", "mon"), "day_of_month"),
        (("0", "0", "8-14", "*", "mon#1"), "day_of_week"),
        (("0", "0", "L", "*", "mon#1"), "day_of_week"),
        (("0", "0", "1-28", "2", "0#5"), "day_of_week"),
    ],
)
def test_a_rule_that_can_never_match_is_refused(fields: tuple[str, ...], field: str) -> None:
    with pytest.raises(InvalidSchedule) as caught:
        check_crontab(*fields)
    assert caught.value.field == field
    with pytest.raises(InvalidSchedule):
        Cron(*fields)


def test_rare_rules_are_not_refused() -> None:
    for fields in (("0", "0", "29", "2", "1"), ("0", "0", "29", "2", "0#5"), ("0", "0", "29", "*", "mon#L")):
        check_crontab(*fields)


def test_equal_rules_are_equal_and_hash_alike() -> None:
    one = Cron("0", "9", "*", "*", "mon-fri", "europe/paris")
    two = Cron(0, [9], "1-31", range(1, 13), "1-5", one.tz)
    assert one == two
    assert len({one, two}) == 1
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != Cron("0", "9", "*", "*", "mon-fri", "Europe/London")
    assert Cron("0-59", "*") != Cron("*", "*"), "the star decides about clock changes"


def test_a_rule_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        Cron().minute = "5"  # type: ignore[misc]


@pytest.mark.parametrize("text", ["* * * *", "* * * * * *", "", "0 9 * * mon fri"])
def test_a_line_has_five_fields(text: str) -> None:
    with pytest.raises(InvalidSchedule, match="five fields"):
        Cron.parse(text)


def test_spaces_around_commas_do_not_split_a_line() -> None:
    assert Cron.parse("0 9 * * mon , fri") == Cron(0, 9, day_of_week="1,5")


TOKENS = st.sampled_from([*"0123456789*/-,#L ", "jan", "mon", "sunday", "fri", "59", "60", "31", "7", "*/", "\t", "x"])
TEXTS = st.one_of(st.text(max_size=12), st.lists(TOKENS, max_size=9).map("".join))


@given(st.sampled_from(sorted(KINDS)), TEXTS)
@example("minute", "5,*/60")
@example("day_of_week", "0-7/5")
def test_any_text_is_an_error_or_a_rule_whose_canonical_text_reads_as_itself(field: str, text: str) -> None:
    try:
        first = read(field, text)
    except InvalidSchedule as error:
        assert error.field == field
        assert "\n" not in str(error)
        return
    assert read(field, first.text) == first
    assert first.starred == (
        text.strip(" \t").startswith("*") or (first.text == "*" and field not in ("minute", "hour"))
    )


@pytest.mark.parametrize("text", ["L-3", "LW", "15W", "L/2", "1-L"])
def test_other_programs_ways_with_l_are_refused_in_words_that_offer_nothing_that_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchedule) as refused:
        canonical_field("day_of_month", text)
    assert "L-" not in str(refused.value).replace(repr(text), "")
