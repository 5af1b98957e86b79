"""What an AMQP connection can carry. One message that it cannot carry would end it for all the others.

py-amqp finds out while it writes, and some faults only the broker finds, which then closes the connection. So each
message is encoded here first; what was encoded is kept and written as it is.
"""

from __future__ import annotations

from typing import Any

#: A short string of AMQP 0-9-1 holds so many bytes.
_SHORT = 255
#: Of a content header's frame, what is not properties: the frame's own eight bytes, the class, the weight, the size.
_FRAME = 8 + 2 + 2 + 8


class Unencodable(ValueError):
    """AMQP cannot carry a message as it is; the text names the part at fault. Make it shorter, or another type."""


def guard(channel: Any) -> None:
    """Let a channel refuse what it cannot carry, before a byte of it is written. Its `basic_publish` then raises
    `Unencodable`.
    """
    publish = channel.basic_publish

    def checked(message: object, exchange: str = "", routing_key: str = "", *args: object, **kwargs: object) -> object:
        check(message, exchange, routing_key, channel.connection.frame_max)
        return publish(message, exchange, routing_key, *args, **kwargs)

    channel.basic_publish = checked


def check(message: Any, exchange: str, routing_key: str, frame_max: int) -> None:
    """Encode the headers and properties of an amqp.Message. Raises `Unencodable` naming what cannot be carried.

    `frame_max`: how many bytes a frame may have, as broker and client agreed.
    """
    for name, text in (("exchange", exchange), ("routing_key", routing_key)):
        if len(text.encode("utf-8", "surrogatepass")) > _SHORT:
            raise Unencodable(f"{name}: it has more than {_SHORT} bytes")
    try:
        properties = message._serialize_properties()
    except Exception as error:  # whatever the encoder meets in a value
        raise Unencodable(f"headers: AMQP cannot carry the headers or properties: {error!r}") from error
    if len(properties) + _FRAME > frame_max:
        raise Unencodable(f"headers: they need {len(properties)} bytes, and a frame holds {frame_max}")
    message._serialize_properties = lambda: properties
