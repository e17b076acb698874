"""The base of responses and bodies: structs with Python names, which tolerate unknown fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import msgspec

Item = TypeVar("Item")
Values = TypeVar("Values")

SECRET_FIELDS = frozenset({
    "access_token", "account_holder_name", "account_number", "action_id", "client_secret",
    "client_session_token", "hosted_url", "kyc_provider_token", "line1", "line2", "payment_url",
    "signature", "signing_secret", "url",
})  # fmt: skip
"""Fields with credentials or personal data: a repr shows only that they are set."""

if TYPE_CHECKING:
    Known: TypeAlias = Values | str
    """One of the values that this release knows, or any that a later service adds."""
else:

    class Known:
        """Read as any text, so that a value which a later service adds is accepted."""

        def __class_getitem__(cls, values: object) -> type[str]:
            return str


class Response(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a response. Fields that this release does not know are ignored."""

    def __repr__(self) -> str:
        return _repr_without_secrets(self)


class Page(Response, Generic[Item], frozen=True, kw_only=True, rename="camel"):
    """One page of a list, newest first."""

    data: list[Item]
    limit: int
    has_next_page: bool
    next_cursor: str | None


class Body(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a body. Fields that are not given are not sent; None is sent as null."""

    def __repr__(self) -> str:
        return _repr_without_secrets(self)


def _repr_without_secrets(struct: msgspec.Struct) -> str:
    shown = ", ".join(
        f"{name}={_shown(name, getattr(struct, name))}" for name in struct.__struct_fields__
    )
    return f"{type(struct).__name__}({shown})"


def _shown(name: str, value: Any) -> str:
    return "'[redacted]'" if name in SECRET_FIELDS and isinstance(value, str) else repr(value)
