"""The senders of a deployment's chains, and for how many transfers each has coins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

import attrs

from payments_core.chains.gas import MAX_READ_AT_ONCE, ReportsGas
from payments_core.chains.outbox.nonces import find_present_senders
from payments_core.chains.port import Chain, ChainError
from payments_core.storage.port import Storage
from payments_core_http.deployment.build import build_chains, build_storage
from payments_core_http.deployment.configuration import Configuration


@attrs.frozen
class FoundSender:
    """A sender's address, and the number of transfers; None if the nodes did not say it."""

    address: str
    transfers: int | None


def list_senders(configuration: Configuration) -> Mapping[int, Sequence[FoundSender]]:
    """By chain, those that have sent before, some if there are many. Simulated chains are absent.

    It asks the storage, and the nodes of each chain. Raises ConfigurationRefused, StorageError.
    """
    chains = build_chains(configuration) or {}
    if not chains or not _has_storage(configuration):
        return dict.fromkeys(chains, ())
    with closing(build_storage(configuration)) as storage:
        return {number: _read_senders(storage, chain) for number, chain in chains.items()}


def _has_storage(configuration: Configuration) -> bool:
    """Whether there can be one: a look at an SQLite file that does not exist would create it."""
    file = configuration.storage.url.removeprefix("sqlite:///")
    return file == configuration.storage.url or Path(file).exists()


def _read_senders(storage: Storage, chain: Chain) -> Sequence[FoundSender]:
    senders = find_present_senders(storage, chain, MAX_READ_AT_ONCE)
    if not senders or not isinstance(chain, ReportsGas):
        return [FoundSender(one, None) for one in senders]
    chain.follow_senders(senders)
    with suppress(ChainError):
        chain.heads()
    known = chain.list_affordable()
    return [FoundSender(one, known.get(one)) for one in senders]
