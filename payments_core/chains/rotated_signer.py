"""A rotated operator key: the new key signs, and earlier keys finish their work.

A transaction of an earlier key may wait in a pool, and only the same key can raise its fees or use
up its nonce. So a key stays configured until all that it has signed is final.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from payments_core.chains.port import SignerRefused
from payments_core.plain_calls import require_plain_methods


class OperatorSigner(Protocol):
    """The signer of the operators, as a chain's adapter needs it."""

    def address(self, environment_id: str) -> str:
        """The address of the environment's operator. Raises SignerRefused if it has none."""

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """A signature by that address. Raises SignerRefused, ChainUnavailable."""


@attrs.frozen
class RotatedSigner:
    """Signs as `current`. `former` are the signers with earlier keys.

    Raises TypeError for a signer with an asynchronous method.
    """

    current: OperatorSigner
    former: tuple[OperatorSigner, ...]

    def __attrs_post_init__(self) -> None:
        for one in (self.current, *self.former):
            require_plain_methods(one, "signer", OperatorSigner)

    def address(self, environment_id: str) -> str:
        """See OperatorSigner."""
        return self.current.address(environment_id)

    def sign(self, environment_id: str, digest: bytes) -> bytes:
        """See OperatorSigner."""
        return self.current.sign(environment_id, digest)


def find_signer(signer: OperatorSigner, environment_id: str, address: str) -> OperatorSigner:
    """The signer of an environment with the key of an address, which may be a former one.

    Raises SignerRefused.
    """
    known = (signer.current, *signer.former) if isinstance(signer, RotatedSigner) else (signer,)
    for one in known:
        try:
            if one.address(environment_id) == address:
                return one
        except SignerRefused:  # it never signed for this environment
            continue
    raise SignerRefused(
        f"the key of {address} is not configured: give it in providers.signer.former_urls"
    )
