"""The form of a URL that a person is sent to: what its text may contain, and what must be escaped.

Each error names the rule that the text breaks, so that the caller can repair it. Whether the host
may be used is not decided here.
"""

from __future__ import annotations

import re
import unicodedata

MAX_PAGE_URL_LENGTH = 4_096
"""The length of the URL of a provider's page: it may have a signed order in its query."""

_SCHEME = re.compile(r"(https?)://", re.ASCII | re.IGNORECASE)
_END_OF_AUTHORITY = re.compile(r"[/?#\\]")
_SPACES = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp"})
"""Unicode's categories of spaces, of control characters and of characters without a shape."""

_REPAIRED = '"<>\\^`{|}'
"""Characters that URLs cannot contain, and that browsers change or escape (RFC 3986, 2.2)."""


def find_url_form_fault(text: str) -> str | None:
    """The error of a text that is not an absolute http(s) URL, as a sentence that follows its path.

    A URL is printable ASCII: a host of other letters is in Punycode, and the rest percent-encoded.
    """
    match = _SCHEME.match(text)
    if match is None:
        return "must be an absolute URL that begins with https:// or http://"
    if not match[1].islower():
        return f"must have its scheme in lower case: {match[1].lower()}://"
    if any(unicodedata.category(letter) in _SPACES for letter in text):
        return "must not contain spaces or control characters; a space is written as %20"
    host, rest = _split_authority(text[match.end() :])
    if not host:
        return f"must name a host after {match[0]}"
    if not host.isascii():
        return "must have its host in ASCII; an international name is in Punycode: xn--…"
    if not rest.isascii():
        return "must be ASCII; other characters are percent-encoded in UTF-8, such as %C3%BC for ü"
    found = next((letter for letter in text if letter in _REPAIRED), None)
    if found is None:
        return None
    escaped = f"must not contain {found}; it is written as %{ord(found):02X}"
    return f"{escaped}, and placeholders are not filled in" if found in "{}" else escaped


def is_page_url(answer: object) -> bool:
    """Whether a provider's answer is the URL of a page to which a person can be sent."""
    if not isinstance(answer, str) or len(answer) > MAX_PAGE_URL_LENGTH:
        return False
    return find_url_form_fault(answer) is None


def _split_authority(text: str) -> tuple[str, str]:
    """What stands before the path, query or fragment, and the rest."""
    end = _END_OF_AUTHORITY.search(text)
    return (text, "") if end is None else (text[: end.start()], text[end.start() :])
