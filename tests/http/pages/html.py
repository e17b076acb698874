"""A page as its reader has it: elements with their attributes, and its text."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urljoin

LINKS = ("href", "src", "action")
VOID = {"meta", "link", "input", "br", "hr", "img", "path"}


class Html(HTMLParser):
    """A page; every element that is opened must be closed."""

    def __init__(self, body: bytes, path: str | None = None) -> None:
        """Links to other pages are as they lead from `path`; without it, as they are written."""
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.translatable = ""
        """The text of the body that a browser's translator may change."""
        self._is_kept: list[bool] = []
        self._path = path
        self.feed(body.decode())
        self.close()
        assert self.open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: self._lead(name, text) for name, text in attrs}))
        if tag not in VOID:
            self.open.append(tag)
            is_kept = tag == "head" or dict(attrs).get("translate") == "no"
            self._is_kept.append(is_kept or self._is_kept[-1:] == [True])

    def _lead(self, name: str, text: str | None) -> str | None:
        if self._path is None or not text or text[0] in "?#" or name not in LINKS:
            return text
        return urljoin(self._path, text)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag
            self._is_kept.pop()

    def handle_data(self, data: str) -> None:
        self.text += data
        if not (self._is_kept and self._is_kept[-1]):
            self.translatable += data

    def all(self, name: str) -> Iterator[dict[str, str | None]]:
        return (attributes for tag, attributes in self.elements if tag == name)

    @property
    def stage(self) -> str | None:
        """The stage that the page shows."""
        return next(one["data-stage"] for one in self.all("main") if "data-stage" in one)
