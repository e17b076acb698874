"""A bank account with each field wrong in turn, by its JSON name, and what is said of it.

`...` stands for a field that is left out. The library and HTTP are held to this table.
"""

from __future__ import annotations

from typing import Any

NOT_ASCII = "must be in printable ASCII, as US banks carry it"

WRONG_FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("currency", "eur", "must be usd"),
    ("currency", ..., "is required"),
    ("country", "CA", "must be US"),
    ("accountHolderName", "", "must have 1 to 22 characters"),
    ("accountHolderName", "a" * 23, "must have 1 to 22 characters"),
    ("accountHolderName", ..., "is required"),
    ("accountHolderName", "  ", "must not be blank"),
    ("accountHolderName", "Ada\nLovelace", "must have printable characters only"),
    ("accountHolderName", "Ada\u202eLovelace", "must have printable characters only"),
    (
        "accountHolderName",
        "Jos\u00e9 N\u00fa\u00f1ez",
        NOT_ASCII,
    ),
    (
        "accountHolderName",
        "\u0418\u0432\u0430\u043d",
        NOT_ASCII,
    ),
    ("accountHolderName", "Ada \U0001f389", NOT_ASCII),
    ("accountHolderType", "trust", "must be one of individual, business"),
    ("accountNumber", "123", "must be 4 to 17 digits"),
    ("accountNumber", "1" * 18, "must be 4 to 17 digits"),
    ("accountNumber", "1234 5678", "must be 4 to 17 digits"),
    ("accountNumber", 12345678, "must be a string"),
    ("routingNumber", "02100002", "must be an ABA routing number of 9 digits"),
    ("routingNumber", "021000022", "must end with the right check digit"),
    ("routingNumber", "991000021", "must begin with 01 to 12, 21 to 32 or 61 to 72"),
    ("accountType", "current", "must be one of checking, savings"),
    ("bankName", "", "must have 1 to 35 characters"),
    ("bankName", "\t", "must have printable characters only"),
    ("bankName", "b" * 36, "must have 1 to 35 characters"),
    ("bankName", "Banco Ita\u00fa", NOT_ASCII),
    ("address", ..., "is required"),
    ("address.line1", "", "must have 1 to 35 characters"),
    ("address.line1", " ", "must not be blank"),
    ("address.line2", "", "must have 1 to 35 characters"),
    ("address.line1", "1 Main St\u2013Rear", NOT_ASCII),
    ("address.line2", "l" * 36, "must have 1 to 35 characters"),
    ("address.city", "c" * 36, "must have 1 to 35 characters"),
    ("address.city", "San Jos\u00e9", NOT_ASCII),
    ("address.city", ..., "is required"),
    ("address.city", "New\r\nYork", "must have printable characters only"),
    ("address.state", "ZZ", "must be a state as two capital letters, such as NY"),
    ("address.state", "New York", "must be a state as two capital letters, such as NY"),
    (
        "address.postalCode",
        "1000",
        "must be a ZIP code such as 10001 or 10001-2345",
    ),
    ("address.country", "USA", "must be US"),
    ("iban", "US00", "is not a known field"),
)
