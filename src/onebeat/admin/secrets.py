"""Mask secret values: those of the keys that the setting `secret_words` names, in arguments and headers."""

from __future__ import annotations

import json

from onebeat.conf import current

#: The columns that hold JSON.
FIELDS = ("args", "kwargs", "headers")
MASK = "********"


def words() -> tuple[str, ...]:
    """What marks a key as secret: any of these words in it, in any letter case."""
    return tuple(current().secret_words.lower().replace(",", " ").split())


def read(text: object) -> object:
    """The JSON of a column; None for text that is none, or empty."""
    try:
        return json.loads(text) if isinstance(text, str) and text else None
    except (ValueError, RecursionError):
        return None


def masked(text: object) -> object:
    """The same JSON with its secret values masked; text without any stays as it is written."""
    value = read(text)
    hidden = _mask(value, words()) if words() and isinstance(value, dict | list) else value
    return text if hidden == value else json.dumps(hidden, ensure_ascii=False)


def restored(text: object, stored: object) -> object:
    """What a person entered, with the stored values in the places that they left masked."""
    value, before = read(text), read(stored)
    if not words() or not isinstance(value, dict | list) or type(value) is not type(before):
        return text
    filled = _fill(value, before, words())
    return text if filled == value else json.dumps(filled)


def _secret(key: object, secret: tuple[str, ...]) -> bool:
    return any(word in str(key).lower() for word in secret)


def _mask(value: object, secret: tuple[str, ...]) -> object:
    if isinstance(value, dict):
        return {key: MASK if _secret(key, secret) else _mask(one, secret) for key, one in value.items()}
    return [_mask(one, secret) for one in value] if isinstance(value, list) else value


def _fill(value: object, before: object, secret: tuple[str, ...]) -> object:
    if isinstance(value, dict) and isinstance(before, dict):
        return {
            key: before[key]
            if one == MASK and key in before and _secret(key, secret)
            else _fill(one, before.get(key), secret)
            for key, one in value.items()
        }
    if isinstance(value, list) and isinstance(before, list):
        pairs = zip(value, [*before, *[None] * len(value)], strict=False)
        return [_fill(one, old, secret) for one, old in pairs]
    return value
