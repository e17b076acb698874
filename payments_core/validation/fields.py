"""The fields that callers give, each with its rule: one place for the library and HTTP.

`readers.py` reads arguments, input classes, bodies and queries by these annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

from payments_core.validation.metadata import AnyText, Metadata

AccountId = Annotated[str, Meta(min_length=1, max_length=64)]
ExternalUserId = Annotated[str, Meta(min_length=1, max_length=128)]
Amount = Annotated[
    str,
    Meta(
        pattern=r"^(0|[1-9][0-9]*)(\.[0-9]+)?$",
        max_length=80,
        extra={"rule": "a decimal string such as 25.00, with no sign or exponent"},
    ),
]
ChainId = Annotated[int, Meta(ge=1)]
AssetSymbol = Annotated[str, Meta(min_length=1, max_length=16)]
Label = Annotated[str, Meta(min_length=1, max_length=128)]
Email = Annotated[
    str, Meta(pattern=r"^[^@\s]+@[^@\s]+$", max_length=254, extra={"rule": "an email address"})
]
Username = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_]{3,20}$",
        extra={"rule": "3 to 20 letters, digits or underscores"},
    ),
]
Url = Annotated[
    str,
    Meta(
        pattern=r"^https?://[^\s]+$",
        max_length=2_048,
        extra={"url": True, "rule": "an http(s) URL"},
    ),
]
Address = Annotated[str, Meta(min_length=1, max_length=128)]
Id = Annotated[str, Meta(min_length=1, max_length=64)]
Reference = Annotated[str, Meta(min_length=1, max_length=128)]
Sentence = Annotated[str, Meta(max_length=512)]
ExpiryInSeconds = Annotated[int, Meta(ge=300, le=86_400)]
PaymentAddress = Annotated[str, Meta(min_length=3, max_length=128)]
ActionId = Annotated[str, Meta(min_length=1, max_length=128)]
TransactionHash = Annotated[str, Meta(min_length=1, max_length=128)]
Note = Annotated[str, Meta(min_length=1, max_length=512)]
# Contract wallets' signatures have any length: 0x and 4,096 bytes in hex is the maximum.
Signature = Annotated[str, Meta(min_length=1, max_length=8_194)]
Uint256Text = Annotated[
    str,
    Meta(pattern=r"^(0|[1-9][0-9]*)$", max_length=78, extra={"rule": "a digit string such as 0"}),
]
PublicKey = Annotated[str, Meta(min_length=1, max_length=128)]
PageLimit = Annotated[int, Meta(ge=1, le=1_000)]
HttpPageLimit = Annotated[int, Meta(ge=1, le=100)]
PageNumber = Annotated[int, Meta(ge=1)]
MetadataInput = Annotated[Mapping[str, Any], Metadata]
Credential = Annotated[str, AnyText]
"""A secret, token, password or code, or the name beside it. A wrong one opens nothing, in any
form. It is compared, and never stored."""
Flag = Annotated[bool, Meta()]
"""True or False, and no other value that counts as either."""
