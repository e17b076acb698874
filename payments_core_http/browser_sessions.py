"""The dashboard's cookies, and the tokens that prove that a form is its own.

One cookie holds the token of an operator's session, which only a log-in sets; another a random
number of the log-in page. A third names what a form has done, for the one page that says it next:
an address would say it again at each reload, and a stranger could make one. The token of a form is
derived from a cookie and the form's target, so that another site, which does not know the cookie,
cannot make one (contract §2).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import attrs

from payments_core.credentials.keyring import KeyRing
from payments_core.entropy import Entropy
from payments_core.public_url import find_path
from payments_core_http.client_address import is_loopback_host
from payments_core_http.errors import FormRefused

_PURPOSE = "dashboard form"
_SESSION, _LOGIN, _DONE = "payments_operator", "payments_login", "payments_done"
_DONE_S = 60
_NUMBER_BYTES = 32
_NUMBER = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_MAX_CHARACTERS = 1_000
_OWN_SITES = (None, "same-origin", "none")
"""`Sec-Fetch-Site` of a form of ours: absent in old browsers, `none` after a reload."""


@attrs.frozen
class Cookies:
    """The dashboard's cookies of a browser: a session's token, the log-in page's number, and the
    name of what a form has just done."""

    session: str | None = attrs.field(default=None, repr=False)
    login: str | None = attrs.field(default=None, repr=False)
    done: str | None = None


_NO_COOKIES = Cookies()


def read_cookies(environ: Mapping[str, Any], public_url: str) -> Cookies:
    """The dashboard's cookies. A cookie that is sent twice counts as absent."""
    header = environ.get("HTTP_COOKIE")
    if not header:  # like nearly every program
        return _NO_COOKIES
    parts = [part.strip().partition("=") for part in header.split(";")]

    def find(name: str) -> str | None:
        found = [value for given, _, value in parts if given == _full_name(name, public_url)]
        return found[0] if len(found) == 1 and 0 < len(found[0]) <= _MAX_CHARACTERS else None

    return Cookies(find(_SESSION), find(_LOGIN), find(_DONE))


def build_session_cookie(token: str, public_url: str) -> str:
    """The `Set-Cookie` of a session, until the browser closes; an empty token removes it."""
    return _build_cookie(_SESSION, token, public_url)


def build_login_cookie(number: str, public_url: str) -> str:
    """The `Set-Cookie` of the log-in page."""
    return _build_cookie(_LOGIN, number, public_url)


def build_done_cookie(done: str, public_url: str) -> str:
    """The `Set-Cookie` of what a form has done, for the next page; an empty name removes it."""
    return _build_cookie(_DONE, done, public_url, max_age_s=_DONE_S)


def _build_cookie(name: str, value: str, public_url: str, max_age_s: int | None = None) -> str:
    """A cookie that leaves this machine only under TLS (contract §2).

    With https it is also bound to this exact host: no other name of the domain can set it. From
    http:// outside loopback, where anyone could read it, browsers do not keep it.
    """
    attributes = ["Path=/", "HttpOnly", "SameSite=Strict"]
    if not _is_local(public_url):
        attributes.append("Secure")
    if not value:
        attributes.append("Max-Age=0")
    elif max_age_s is not None:
        attributes.append(f"Max-Age={max_age_s}")
    return "; ".join((f"{_full_name(name, public_url)}={value}", *attributes))


def keeps_sessions(public_url: str) -> bool:
    """Whether browsers keep the cookies there: with https, or on this machine."""
    return _is_secure(public_url) or _is_local(public_url)


def choose_login_number(known: str | None, entropy: Entropy) -> str:
    """The number that a log-in page has: the browser's own, or a new one."""
    if known is not None and _NUMBER.fullmatch(known):
        return known
    return _encode(entropy(_NUMBER_BYTES))


def make_form_token(key_ring: KeyRing, cookie: str, action: str) -> str:
    """The token of a form for the path `action`, for the browser with that cookie."""
    return _encode(key_ring.tag(_PURPOSE, _pack(cookie, action)))


def require_own_form(
    key_ring: KeyRing, environ: Mapping[str, Any], cookie: str | None, action: str, token: str
) -> None:
    """Return if this browser got the form from here. Raises FormRefused."""
    if environ.get("HTTP_SEC_FETCH_SITE") not in _OWN_SITES or cookie is None:
        raise FormRefused()
    try:
        tag = base64.urlsafe_b64decode(token.encode("ascii") + b"==")
    except ValueError:
        raise FormRefused() from None
    if _encode(tag) != token or not key_ring.tag_matches(_PURPOSE, _pack(cookie, action), tag):
        raise FormRefused()


def _full_name(name: str, public_url: str) -> str:
    """The name differs between deployments on one host: with the prefix `__Host-`, which requires
    the path `/` (RFC 6265bis §4.1.3.2), only names can. Cookies know no ports either (§8.5)."""
    port = urlsplit(public_url).port
    place = ("" if port is None else f"+{port}") + find_path(public_url).replace("/", "~")
    return f"__Host-{name}{place}" if _is_secure(public_url) else f"{name}{place}"


def _is_secure(public_url: str) -> bool:
    return public_url.startswith("https://")


def _is_local(public_url: str) -> bool:
    return not _is_secure(public_url) and is_loopback_host(urlsplit(public_url).hostname or "")


def _pack(cookie: str, action: str) -> bytes:
    return f"{cookie}\n{action}".encode()


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
