"""ERC-1271 and ERC-6492: whether a contract accepts a signature, deployed or not yet.

For a wallet that is not deployed the query first makes the call that its signature brings, which
deploys it within the query alone. A wallet that is deployed answers as it is, whatever call comes
with the signature: a stranger's call must not prepare it.
"""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.chains.evm import contract_probe as questions
from payments_core.chains.signatures import SignatureError, unwrap_signature

MAGIC = 0x1626BA7E << 224
"""What `isValidSignature(bytes32,bytes)` returns for yes: its own selector, in front."""

_SELECTOR = bytes.fromhex("1626ba7e")


def build_eth_call(address: str, digest: bytes, signature: bytes) -> Mapping[str, str] | None:
    """The `eth_call`; None if no contract need be asked."""
    if len(signature) > questions.MAX_CALLDATA_BYTES:
        return None
    try:
        wrapped = unwrap_signature(signature)
    except SignatureError:
        return None
    deployment = None
    if wrapped is not None:
        signature = wrapped.signature
        deployment = questions.Deployment(wrapped.factory, wrapped.factory_data)
    padded = signature + bytes(-len(signature) % 32)
    words = (digest, (64).to_bytes(32, "big"), len(signature).to_bytes(32, "big"))
    data = _SELECTOR + b"".join(words) + padded
    return questions.build_eth_call(address, data, deployment)


def accepts(returned: bytes) -> bool | None:
    """Whether the result means yes; None if no contract is there.

    Raises BadResponse.
    """
    answer = questions.parse_result(returned)
    if not answer.has_code:
        return None
    return answer.succeeded and answer.size >= 32 and answer.word == MAGIC
