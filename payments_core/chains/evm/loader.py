"""What `payments_core.chains.loader` calls for `evm+https://…` and `file:` signers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from payments_core.addresses import AddressError, normalize_address
from payments_core.chains.evm.addresses import Deployment, Generation
from payments_core.chains.evm.chain import EvmChain
from payments_core.chains.evm.quorum import NodeQuorum
from payments_core.chains.evm.signers import LocalSigner, Signer
from payments_core.chains.port import SignerRefused
from payments_core.networks import Network

_SETTINGS = frozenset({"admin", "agreement", "generation"})
_GENERATIONS: Mapping[str, Generation] = {"1": 1, "2": 2}


def open_chain(
    chain_id: int,
    urls: Sequence[str],
    *,
    signer: Signer | None,
    settings: Mapping[str, str],
    network: Network | None = None,
) -> EvmChain:
    """A chain of our contracts, on a shipped network unless it is given.

    `settings`: `admin`, the factory's (docs/how-to/keys.md); `agreement`, how many nodes must
    agree, by default more than half of them; and `generation`, 1 or 2, that of the contracts with
    which the deployment began, by default 2.

    Raises ValueError, and ExtraMissing without the packages of the extra `evm`.
    """
    if unknown := sorted(set(settings) - _SETTINGS):
        raise ValueError(
            f"unknown setting {unknown[0]} of an EVM chain; it has admin, agreement and generation"
        )
    if signer is None:
        raise ValueError("an EVM chain needs a signer")
    if "admin" not in settings:
        raise ValueError("admin is missing: the address that authorizes the operators")
    agreement = settings.get("agreement")
    if agreement is not None and not re.fullmatch("[1-9][0-9]?", agreement):
        raise ValueError("agreement must be the number of nodes that must agree")
    generation = _GENERATIONS.get(settings.get("generation", "2"))
    if generation is None:
        raise ValueError("generation must be 1 or 2")
    try:
        deployment = Deployment(normalize_address("evm", settings["admin"]), generation)
    except AddressError as error:
        raise ValueError(f"admin {error}") from error
    enough = None if agreement is None else int(agreement)
    nodes = NodeQuorum(urls, chain_id, enough)
    refuses_first = "generation" not in settings
    return EvmChain(nodes, deployment, signer, network=network, refuses_first=refuses_first)


def open_key_file(url: str) -> LocalSigner:
    """The signer of an existing key file (docs/how-to/keys.md). Raises SignerRefused."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    if parts.netloc or parts.query or parts.fragment or not path.is_absolute():
        raise SignerRefused("expected file:///path/to/operator.key")
    if not path.exists():  # the admin has not named the address of a new key
        raise SignerRefused(f"the key file {path} does not exist")
    return LocalSigner.open(path)
