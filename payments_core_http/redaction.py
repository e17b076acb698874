"""Secrets that must not appear in a log, by their shape: one table, for every logged text.

It errs on the side of hiding. A secret is hidden wherever it is, also inside other text; only a
secret without a mark, a link code or the path of a node's URL, is recognized by what is around it.
All shapes are searched in the original text, so that none can remove another's marks, and every
pattern is bounded, so that no text takes long. A run of characters that may be an encoding, in
percent signs, base64 or hex, is decoded too, also several times, and hidden as a whole.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from math import isfinite
from typing import Any
from urllib.parse import unquote, unquote_plus

import attrs

from payments_core.credentials.tokens import TOKEN_PREFIXES

REDACTED = "[redacted]"

MAX_LOGGED_CHARACTERS = 32_000
"""Characters of one text that are logged. The search continues a little after them, for a secret
that the end would cut in two."""

_LOOKAHEAD_CHARACTERS = 8_000
_MAX_DEPTH = 6

_SECRET_WORDS = (
    r"password|passwd|passphrase|pwd|secret|secret[_-]?key|private[_-]?key|signing[_-]?secret"
    r"|client[_-]?secret|access[_-]?token|refresh[_-]?token|session[_-]?token|token|api[_-]?key"
    r"|key[_-]?ring"
)
_KEY_IN_A_PATH = (
    r"(?<=/)[\w.~%+=-]{16,}"
    # Shorter ones are words unless letters and digits are mixed.
    r"|(?<=/)(?=[\w.~%+=-]{0,14}[0-9])(?=[\w.~%+=-]{0,14}[A-Za-z])[\w.~%+=-]{12,15}"
    r"|(?<=\?)[\s\S]+"
)

TextRange = tuple[int, int]


@attrs.frozen
class SecretPattern:
    """How a secret looks: what leads to it and is kept, and what is hidden.

    If `parts` is given, only those are hidden. A text without any of the `marks`, in lower case, is
    not searched: most texts have none.
    """

    name: str
    marks: tuple[str, ...]
    lead: re.Pattern[str]
    secret: re.Pattern[str]
    parts: re.Pattern[str] | None

    def find_ranges(self, text: str) -> Iterator[TextRange]:
        """Find the ranges in the text. They may overlap: a hidden range may lead to a secret."""
        for lead in self.lead.finditer(text):
            found = self.secret.match(text, lead.end())
            if found is None:
                continue
            if self.parts is None:
                yield found.span()
            else:
                parts = self.parts.finditer(text, *found.span())
                yield from (part.span() for part in parts)


def _secret_pattern(
    name: str,
    marks: str,
    lead: str,
    secret: str,
    *,
    parts: str | None = None,
    any_case: bool = False,
) -> SecretPattern:
    flags = re.ASCII | re.IGNORECASE if any_case else re.ASCII
    return SecretPattern(
        name,
        tuple(marks.split()),
        re.compile(lead, flags),
        re.compile(secret, flags),
        None if parts is None else re.compile(parts, flags),
    )


SECRET_PATTERNS = (
    _secret_pattern(
        "PEM block",
        "-----begin",
        r"-----BEGIN [A-Z0-9 ]{1,40}-----",
        r"[\s\S]{0,4000}?(?:(?=-----END )|\Z)|[\s\S]{4000}",
    ),
    _secret_pattern("user and password of a URL", "@", r"://", r"\S{1,500}(?=@)"),
    _secret_pattern(
        "user and password",
        "@",
        r"(?<![^\s'\"(=,])(?=[^\s'\"(=,:/@]{1,100}:(?!//))",
        r"\S{3,300}(?=@)",
    ),
    _secret_pattern(
        "URL with a key",
        "://",
        r"(?:https?|wss?)://[^\s/?#\"'<>]{1,300}",
        r"[/?#][^\s\"'<>]{1,2000}",
        parts=_KEY_IN_A_PATH,
    ),
    _secret_pattern(
        "request line with a key",
        "get head post put patch delete options",
        r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) ",
        r"/[^\s\"'<>]{1,2000}",
        parts=_KEY_IN_A_PATH,
    ),
    _secret_pattern("key ring entry", "=", r":", r"[A-Za-z0-9+/]{43}="),
    _secret_pattern(
        "app secret", "_sandbox_ _production_", r"[srp]k_(?:sandbox|production)_", r"[\w-]+"
    ),
    _secret_pattern(
        "token",
        " ".join(TOKEN_PREFIXES.values()),
        "|".join(TOKEN_PREFIXES.values()),
        r"[\w-]{8,4000}",
    ),
    _secret_pattern("signing secret", "whsec_", r"whsec_", r"[\w+/=-]{1,4000}"),
    _secret_pattern("Payment client secret", "_secret_", r"_secret_", r"[\w-]{1,4000}"),
    _secret_pattern(
        "JSON Web Token", "eyj", r"eyJ", r"[\w-]{8,500}\.[\w-]{8,4000}(?:\.[\w-]{0,1000})?"
    ),
    _secret_pattern("link", "/pay/", r"/pay/", r"[\w-]{1,200}"),
    _secret_pattern(
        "header",
        "authorization cookie -secret",
        r"(?:authorization|cookie|x-service-payment-secret)[\\\"']{0,4}\s{0,4}[:=]\s{0,4}[\\\"']{0,4}",
        r"[^\n\"']{1,4000}",
        any_case=True,
    ),
    _secret_pattern(
        "secret of a Payment after its header",  # also as (name, value), or in a sentence
        "payment-secret payment_secret",
        r"x[_-]service[_-]payment[_-]secret[\\\"']{0,4}[\s,:=]{1,4}[\\\"']{0,4}",
        r"[^\s\"'\\]{1,4000}",
        any_case=True,
    ),
    _secret_pattern(
        "Authorization",
        "basic bearer",
        r"(?:Basic|Bearer)[\s:]{1,8}",
        r"[^\s'\",;]{1,4000}",
        any_case=True,
    ),
    _secret_pattern(
        "named value",
        "= :",
        rf"(?:{_SECRET_WORDS})[\\\"']{{0,4}}\s{{0,3}}[=:]\s{{0,3}}",
        r"'(?:\\.|[^'\\]){0,2000}'|\"(?:\\.|[^\"\\]){0,2000}\""  # quoted
        r"|\\{1,3}'[^']{0,2000}|\\{1,3}\"[^\"]{0,2000}"  # quoted in what is quoted
        r"|[^\s,;&)}]{1,2000}",
        any_case=True,
    ),
    _secret_pattern(
        "key or pass",  # except a comparison, and what a trace shows of `max(..., key=lambda`
        "key pass",
        r"(?<![A-Za-z])(?:key|pass)\s{0,3}=(?!=)\s{0,3}(?!lambda\b)",
        r"'(?:\\.|[^'\\]){0,2000}'|\"(?:\\.|[^\"\\]){0,2000}\"|[^\s,;&)}]{1,2000}",
        any_case=True,
    ),
)
"""The secrets that have marks."""

_LINK_CODE = re.compile(
    r"(?<![\w-])(?=[\w-]{0,48}[A-Z])(?=[\w-]{0,48}[a-z])[\w-]{48}(?![\w-])", re.ASCII
)
_LINK_CODE_LENGTH = 48
_SECRET_NAME = re.compile(
    rf"(?:\w{{1,40}}[_-])?(?:{_SECRET_WORDS}|authorization|cookie)", re.IGNORECASE
)
_MAX_NAME_CHARACTERS = 100
"""A longer name does not match `_SECRET_NAME`."""
_PATTERN_BY_MARK = tuple((mark, shape) for shape in SECRET_PATTERNS for mark in shape.marks)

_CREDENTIAL = re.compile(
    r"[srp]k_(?:sandbox|production)_|(?:cst|cat|ops|whsec)_[\w+/-]{16}|_secret_[\w-]{16}", re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MAX_ENCODINGS = 4
"""How often an encoding is decoded: a key in base64 in a query in a query, and once more."""
_MAYBE_ENCODED = re.compile(r"%[0-9A-Fa-f]{2}|[A-Za-z0-9+/_-]{40}")
_OF_BASE64 = str.maketrans({"-": "+", "_": "/", "\r": None, "\n": None})
_ENCODINGS: tuple[tuple[re.Pattern[str], Callable[[str], Iterator[str | bytes]]], ...] = (
    (re.compile(r"[\w%+=.~:/-]{12,}", re.ASCII), lambda text: _decode_percent(text)),
    (re.compile(r"[\w-]{40,}={0,2}", re.ASCII), lambda text: _decode_base64(text)),
    (
        re.compile(r"[A-Za-z0-9+/]{40,}(?:\r?\n[A-Za-z0-9+/]+)*={0,2}"),
        lambda text: _decode_base64(text),
    ),
    (re.compile(r"[0-9A-Fa-f]{80,}"), lambda text: _decode_hex(text)),
)
"""How an encoding looks, and what it may mean. Each secret has at least 40 characters."""

_MIN_SECRET_CHARACTERS = 8
"""A shorter text is part of too many words to be hidden everywhere."""
_known_secrets: frozenset[str] = frozenset()


def register_secrets(secrets: Iterable[str]) -> None:
    """Hide these texts from now on, wherever they are: known secrets without a shape."""
    global _known_secrets
    _known_secrets |= {secret for secret in secrets if len(secret) >= _MIN_SECRET_CHARACTERS}


def whole_word_pattern(text: str) -> str:
    """A pattern for the text that does not match inside a longer word."""
    return rf"(?<!\w){re.escape(text)}(?!\w)"


def redact(text: str) -> str:
    """The text without anything that looks like a credential, or like one in an encoding."""
    return _redact(text, _MAX_ENCODINGS)


def _redact(text: str, encodings: int) -> str:
    seen = text[: MAX_LOGGED_CHARACTERS + _LOOKAHEAD_CHARACTERS]
    lowered = seen.lower()
    spans: list[TextRange] = []
    for mark, shape in _PATTERN_BY_MARK:
        if mark in lowered:
            spans += shape.find_ranges(seen)
    if len(seen) >= _LINK_CODE_LENGTH:
        spans += (found.span() for found in _LINK_CODE.finditer(seen))
    for secret in _known_secrets:
        if secret in seen:
            pattern = whole_word_pattern(secret)
            spans += (found.span() for found in re.finditer(pattern, seen))
    if encodings and _MAYBE_ENCODED.search(seen):
        spans += _find_encoded(seen, encodings)
    logged = seen[:MAX_LOGGED_CHARACTERS]
    if spans:
        logged = "".join(_mask_ranges(logged, sorted(spans)))
    return logged if len(text) <= MAX_LOGGED_CHARACTERS else f"{logged}… [cut]"


def _find_encoded(text: str, encodings: int) -> Iterator[TextRange]:
    """The ranges that hold a secret once they are decoded, so many times at most."""
    for shape, decode in _ENCODINGS:
        for found in shape.finditer(text):
            if any(_holds_secret(decoded, encodings - 1) for decoded in decode(found[0])):
                yield found.span()


def _holds_secret(decoded: str | bytes, encodings: int) -> bool:
    if isinstance(decoded, str):
        return _redact(decoded, encodings) != decoded
    try:
        text = decoded.decode()
    except UnicodeDecodeError:
        text = ""
    if not text or _CONTROL.search(text):
        # Patterns without a mark would find something in random bytes.
        return _CREDENTIAL.search(decoded.decode("latin-1")) is not None
    return _redact(text, encodings) != text


def _decode_percent(text: str) -> Iterator[str | bytes]:
    if "%" in text:
        yield unquote(text)
        if "+" in text:
            yield unquote_plus(text)


def _decode_base64(text: str) -> Iterator[str | bytes]:
    """With each of the four beginnings: what stands before the encoding may be of its letters."""
    letters = text.translate(_OF_BASE64).rstrip("=")
    for begin in range(4):
        whole = letters[begin : begin + (len(letters) - begin) // 4 * 4]
        rest = letters[begin + len(whole) :]
        padded = rest + "=" * (4 - len(rest)) if len(rest) > 1 else ""
        yield binascii.a2b_base64(whole + padded)


def _decode_hex(text: str) -> Iterator[str | bytes]:
    for begin in range(2):
        end = begin + (len(text) - begin) // 2 * 2
        yield bytes.fromhex(text[begin:end])


def _mask_ranges(text: str, spans: Iterable[TextRange]) -> Iterator[str]:
    """The text with each run of spans hidden; the spans are in order."""
    end = 0
    hiding = False
    for first, last in spans:
        if first > end or not hiding:
            yield text[end:first]
            yield REDACTED if first < len(text) else ""
            hiding = True
        end = max(end, last)
    yield text[end:]


def redact_value(value: Any, depth: int = 0) -> Any:
    """Redact a value that is to become JSON; a value that JSON lacks becomes its text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, str):
        return redact(value)
    if depth < _MAX_DEPTH and isinstance(value, Mapping):
        return {
            redact(str(name)): redact_named_value(str(name), one, depth + 1)
            for name, one in value.items()
        }
    if depth < _MAX_DEPTH and isinstance(value, list | tuple | set | frozenset):
        return [redact_value(one, depth + 1) for one in value]
    try:
        return redact(str(value))
    except Exception:  # the rest of the record is worth having all the same
        return f"a {type(value).__name__} without a text"


def redact_named_value(name: str, value: Any, depth: int = 0) -> Any:
    """Redact a value under a name, which may itself mark it as secret."""
    if value is not None and _is_secret_name(name[:_MAX_NAME_CHARACTERS]):
        return REDACTED
    return redact_value(value, depth)


@lru_cache(maxsize=1_000)
def _is_secret_name(name: str) -> bool:
    return _SECRET_NAME.fullmatch(name) is not None
