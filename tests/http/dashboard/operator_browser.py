"""An operator at the dashboard: a browser that keeps its cookie, reads pages and sends forms."""

from __future__ import annotations

from collections.abc import Mapping
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import attrs

from payments_core.tenants.operators import HashCost
from tests.http.api_harness import ApiHarness, Seen
from tests.http.checkout import Checkout
from tests.http.pages.html import Html

PLACE = "+8080"
"""The port of the public URL: two deployments on one host share no cookie."""
COOKIE, LOGIN_COOKIE, DONE_COOKIE = (
    f"payments_{name}{PLACE}" for name in ("operator", "login", "done")
)
SCRIPT = ("script", {"src": "/assets/copy.js"})
"""The one element of a script, on every page."""

CHEAP = HashCost(passes=1, memory_bytes=8_192)
"""Tests hash passwords as cheaply as the library allows."""


class Forms(HTMLParser):
    """The forms of the page at a path: where each goes, and what is in it."""

    def __init__(self, body: bytes, path: str) -> None:
        super().__init__()
        self._path = path
        self.by_action: dict[str, dict[str, str]] = {}
        self._fields: dict[str, str] = {}
        self._choice = self._area = ""
        """The list, and the field of several lines, that the parser is in."""
        self.feed(body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "form":
            self._fields = self.by_action.setdefault(urljoin(self._path, given["action"]), {})
        elif tag == "select":
            self._choice = str(given["name"])
        elif tag == "option" and (self._choice not in self._fields or "selected" in given):
            self._fields[self._choice] = given.get("value") or ""
        elif tag == "textarea":
            self._area = str(given["name"])
            self._fields[self._area] = ""
        elif tag == "input" and given.get("name"):
            if given.get("type") not in ("checkbox", "radio"):
                self._fields[str(given["name"])] = given.get("value") or ""
            elif "checked" in given:
                self._fields[str(given["name"])] = given.get("value") or "on"

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._fields[self._area] = self._fields[self._area].removeprefix("\n")
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self._fields[self._area] += data


@attrs.define
class OperatorBrowser:
    """A browser, logged in or not."""

    api: ApiHarness
    cookie: str | None = None
    number: str | None = None
    done: str | None = None
    environ: dict[str, str] = attrs.field(factory=dict)

    def get(self, path: str, **more: Any) -> Seen:
        return self.send("GET", path, **more)

    def open(self, path: str) -> Html:
        """A page that must be there, whole."""
        seen = self.get(path)
        assert seen.status == 200, seen.body
        return Html(seen.body, path)

    def forms(self, path: str) -> Mapping[str, dict[str, str]]:
        return Forms(self.get(path).body, path).by_action

    def submit(self, page: str, action: str, **fields: str) -> Seen:
        """The form of a page, with what its hidden fields say."""
        return self.post(action, {**self.forms(page)[action], **fields})

    def post(self, path: str, fields: Mapping[str, str], **more: Any) -> Seen:
        return self.send("POST", path, urlencode(fields).encode(), **more)

    def send(
        self,
        method: str,
        path: str,
        raw: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        cookie: str | None = None,
        media_type: str = "application/x-www-form-urlencoded",
    ) -> Seen:
        given = cookie if cookie is not None else self.cookie
        kept = ((COOKIE, given), (LOGIN_COOKIE, self.number), (DONE_COOKIE, self.done))
        cookies = "; ".join(
            f"{name.replace(PLACE, self._place)}={value}" for name, value in kept if value
        )
        sent = {**({"Cookie": cookies} if cookies else {}), **(headers or {})}
        typed = {"CONTENT_TYPE": media_type} if method == "POST" else {}
        environ = {**typed, **self.environ}
        seen = self.api.call(method, path, auth=None, raw=raw, headers=sent, environ=environ)
        self._keep_cookie(seen)
        if "location" in seen.headers:
            seen.headers["location"] = urljoin(path, seen.headers["location"])
        return seen

    def log_in(self, username: str, password: str, **more: str) -> Seen:
        return self.submit(
            "/dashboard/login", "/dashboard/login", username=username, password=password, **more
        )

    @property
    def _place(self) -> str:
        """What tells the cookies of the deployment from others on its host."""
        parts = urlsplit(self.api.service.settings.public_url)
        return (f"+{parts.port}" if parts.port else "") + parts.path.replace("/", "~")

    def _keep_cookie(self, seen: Seen) -> None:
        for line in seen.headers.get("set-cookie", "").splitlines():
            name, _, value = line.partition(";")[0].replace(self._place, PLACE).partition("=")
            if name == COOKIE:
                self.cookie = value or None
            elif name == LOGIN_COOKIE:
                self.number = value
            elif name == DONE_COOKIE:
                self.done = value or None


def open_browser(checkout: Checkout | ApiHarness, username: str = "olivia") -> OperatorBrowser:
    """The browser of a new operator of the API's environment, logged in."""
    api = checkout if isinstance(checkout, ApiHarness) else checkout.api
    api.service.parts.operators._cost = CHEAP
    made = api.service.operators.create(api.partition, username)
    browser = OperatorBrowser(api)
    seen = browser.log_in(username, made.password)
    assert seen.status == 303, seen.body
    return browser
