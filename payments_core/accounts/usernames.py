"""Usernames and payment addresses, and their rules (interface "Money Account", contract §5).

Letters differ by more than their case: `username_key` is what must be unique. So a name cannot look
like another that differs only in case. A partner id has only lower-case letters.
"""

from __future__ import annotations

import re

from payments_core.errors import NotFound, ValidationFailed

RULE = "must be 3 to 20 letters, digits or underscores"
IS_RESERVED = "is reserved"

RESERVED = frozenset({
    "abuse", "accounts", "admin", "administrator", "api", "billing", "compliance", "contact",
    "escrow", "finance", "fraud", "help", "helpdesk", "hostmaster", "info", "legal", "mail",
    "moderator", "no_reply", "noreply", "null", "official", "operator", "owner", "payment",
    "payments", "postmaster", "refund", "refunds", "root", "sandbox", "security", "service",
    "settlement", "staff", "superuser", "support", "sysadmin", "system", "team", "treasury",
    "undefined", "vault", "verify", "webmaster",
})  # fmt: skip
"""Names that payers would take for the service or its operator, by their keys."""

_PATTERN = re.compile(r"[A-Za-z0-9_]{3,20}", re.ASCII)


def username_key(username: str) -> str:
    """The username in lower case; two accounts never have the same.

    Letters outside ASCII stay as they are: some become an ASCII letter in lower case (U+212A).
    """
    return username.lower() if username.isascii() else username


def payee_key(payment_address: str, partner_id: str, path: str) -> str:
    """The key of the username in `<username>@<partner id>`, in any case.

    Raises ValidationFailed at `path` for a text of another form, NotFound for another partner's.
    """
    username, _, resolver = payment_address.rpartition("@")
    if not username or not resolver:
        raise ValidationFailed.at(path, "must be a payment address: <username>@<partner id>")
    if username_key(resolver) != partner_id:
        raise NotFound("payment address")
    return username_key(username)


def is_reserved(username: str) -> bool:
    """Whether the name is reserved, though its form is valid."""
    return username_key(username) in RESERVED


def require_form(username: str) -> None:
    """Raise ValidationFailed for a text that is not a username."""
    if not _PATTERN.fullmatch(username):
        raise ValidationFailed.at("username", RULE)


def require_usable(username: str) -> None:
    """Raise ValidationFailed for a text that is not a username, and for a reserved one."""
    require_form(username)
    if is_reserved(username):
        raise ValidationFailed.at("username", IS_RESERVED)
