"""What a browser would send of a page's form, if nobody touched it: its fields as they are written in the page."""

from __future__ import annotations

from html.parser import HTMLParser


class Fields(HTMLParser):
    """The successful controls of the page's forms, by the rules of HTML, with a browser's line ends in texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.data: dict[str, list[str]] = {}
        self._select: str | None = None
        self._choices: list[tuple[str, bool]] = []
        self._area: str | None = None
        self._text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        name, value = given.get("name"), given.get("value")
        if tag == "select" and name:
            self._select, self._choices = name, []
        elif tag == "option" and self._select:
            self._choices.append((value or "", "selected" in given))
        elif tag == "textarea" and name:
            self._area, self._text = name, ""
        elif tag == "input" and name:
            kind = given.get("type", "text")
            if kind in ("submit", "button", "image") or (kind in ("checkbox", "radio") and "checked" not in given):
                return
            self.data.setdefault(name, []).append("on" if value is None and kind == "checkbox" else value or "")

    def handle_data(self, data: str) -> None:
        if self._area:
            self._text += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "select" and self._select:
            chosen = [value for value, selected in self._choices if selected] or [self._choices[0][0]]
            self.data.setdefault(self._select, []).extend(chosen[:1])
            self._select = None
        elif tag == "textarea" and self._area:
            text = self._text.removeprefix("\r\n").removeprefix("\n").replace("\r\n", "\n").replace("\n", "\r\n")
            self.data.setdefault(self._area, []).append(text)
            self._area = None


def sent(html: str) -> dict[str, list[str]]:
    """The data of the page's form as it was loaded, without the search and the like that stand beside it."""
    return {name: values for name, values in Fields(html).data.items() if name not in ("csrfmiddlewaretoken", "next")}
