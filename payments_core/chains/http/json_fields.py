"""The parts of a node's JSON answer, each of the type it must have, or ChainUnavailable.

Fields that are not needed are ignored. A number is an integer within its bounds and nothing
else: a fraction, or a number too large for JSON, has already lost digits.
"""

from __future__ import annotations

import re

import msgspec

from payments_core.chains.port import ChainUnavailable

U64 = 1 << 64
HEIGHT_BOUND = 1 << 63
"""Heights are below this, so that every storage takes them."""

_DIGITS = re.compile(r"0|[1-9][0-9]{0,77}", re.ASCII)


def parse_json(raw: bytes | msgspec.Raw) -> object:
    """The JSON of a body, or of an undecoded part."""
    try:
        answer: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ChainUnavailable("the node's response is not JSON") from error
    return answer


def get_field(answer: object, *path: str) -> object:
    """The value at a path of field names."""
    for name in path:
        if not isinstance(answer, dict) or name not in answer:
            raise ChainUnavailable(f"the node's response lacks {'.'.join(path)}")
        answer = answer[name]
    return answer


def require_list(answer: object, what: str) -> list[object]:
    """A list."""
    if not isinstance(answer, list):
        raise ChainUnavailable(f"the node's {what} are not a list")
    return answer


def require_text(answer: object, what: str) -> str:
    """A string."""
    if not isinstance(answer, str):
        raise ChainUnavailable(f"the node's {what} is not a string")
    return answer


def require_integer(answer: object, what: str, *, below: int = HEIGHT_BOUND) -> int:
    """A JSON integer from 0 up, below a bound."""
    if type(answer) is not int or not 0 <= answer < below:
        raise ChainUnavailable(f"the node's {what} is not a valid number")
    return answer


def parse_digits(answer: object, what: str, *, below: int = U64) -> int:
    """The number of a decimal text without sign or leading zeros, below a bound."""
    if not isinstance(answer, str) or not _DIGITS.fullmatch(answer) or int(answer) >= below:
        raise ChainUnavailable(f"the node's {what} is not a valid number")
    return int(answer)
