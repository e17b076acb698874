"""What a node says when it refuses, for operators: short, and without the secrets of its address.

The text is never interpreted, since it differs from node to node. What a contract adds to a revert
is left out, because strangers write it.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import unquote, urlsplit

import msgspec

MAX_CHARACTERS = 200
_MAX_READ_CHARACTERS = 100_000
_MIN_SECRET_CHARACTERS = 4
_REDACTED = "[redacted]"
_REVERT = re.compile(r"\brevert\w*\b.*", re.IGNORECASE | re.DOTALL)


class NodeWords:
    """Reads the words of one node. Its address may hold a key, and a node may repeat it."""

    def __init__(self, url: str) -> None:
        secrets = sorted(set(_find_secrets(url)), key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, secrets)) or "(?!)", re.IGNORECASE)

    def __repr__(self) -> str:
        return "NodeWords()"

    def read_error(self, error: bytes) -> str:
        """The text in the error of JSON-RPC, which may have any form; empty if there is none."""
        try:
            found = msgspec.json.decode(error)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return ""
        if isinstance(found, dict):
            found = found.get("message")
        if not isinstance(found, str):
            return ""
        text = self._secrets.sub(_REDACTED, found[:_MAX_READ_CHARACTERS])
        text = _REVERT.sub(lambda match: match[0].split(None, 1)[0].rstrip(":"), text)
        shown = "".join(one if one.isprintable() else " " for one in text)
        return " ".join(shown.split())[:MAX_CHARACTERS]

    def read_body(self, body: bytes) -> str:
        """The text in the body of a status that refuses: an error, or an object that has one."""
        try:
            found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            return ""
        return self.read_error(bytes(found.get("error", b"")) or body)


def add_words(text: str, words: str) -> str:
    """The text, with the words of a node if it said any."""
    return f'{text}, saying "{words}"' if words else text


def _find_secrets(url: str) -> Iterator[str]:
    """All of an address that may be secret: everything but its scheme, host and port."""
    parts = urlsplit(url)
    login = parts.netloc.rpartition("@")[0]
    pieces = [login, *login.split(":"), *re.split(r"[/?&=#;,]", f"{parts.path}?{parts.query}")]
    for piece in pieces:
        if len(piece) >= _MIN_SECRET_CHARACTERS:
            yield piece
            yield unquote(piece)
    if login:
        yield b64encode(unquote(login).encode()).decode()
