"""The registry of a deployment: the shipped networks, and those of its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from payments_core.acceptance import Acceptance
from payments_core.chains.read_only import READABLE_USDC
from payments_core.errors import FieldError, ValidationFailed
from payments_core.networks import (
    ETHER,
    Asset,
    FeePolicy,
    NativeCurrency,
    Network,
    Networks,
    shipped_networks,
)
from payments_core.service import REAL_BESIDE_SIMULATED
from payments_core_http.deployment.configuration import (
    Configuration,
    NetworkSettings,
    TokenSettings,
)
from payments_core_http.deployment.loader import ConfigurationRefused

_SOURCE = "of its networks"


def build_networks(configuration: Configuration) -> Networks:
    """The registry. Raises ConfigurationRefused with every fault by its path."""
    shipped = shipped_networks()
    changed: list[Network] = []
    faults: list[FieldError] = []
    for number, given in configuration.networks.items():
        try:
            changed.append(_merge_network(int(number), shipped.get(int(number)), given))
        except _BadTable as error:
            faults.append(error.fault)
    try:
        networks = shipped.merge(*changed)
    except ValidationFailed as failure:
        faults += failure.fields
    if not faults:
        faults += _find_chain_faults(configuration, networks)
    if faults:
        raise ConfigurationRefused(_SOURCE, tuple(faults))
    return networks


def describe_sandbox(configuration: Configuration) -> Iterator[str]:
    """Which networks a sandbox simulates, and which are real, each in a line for people."""
    if configuration.mode != "sandbox":
        return
    networks = build_networks(configuration)
    served = [one for one in networks.values() if str(one.chain_id) in configuration.chains]
    for says, found in (
        ("Simulated networks", list_simulated(configuration, networks)),
        ("Public test networks", [one for one in served if one.is_testnet]),
        ("Networks with real money", [one for one in served if not one.is_testnet]),
    ):
        if found:
            yield f"{says}: {', '.join(f'{one.name} ({one.chain_id})' for one in found)}."


def list_simulated(configuration: Configuration, networks: Networks) -> list[Network]:
    """The networks that the deployment simulates."""
    if not configuration.simulated_chains:
        return []
    known = networks.keep_served(map(int, configuration.chains))
    return [one for one in known.values() if str(one.chain_id) not in configuration.chains]


def _find_chain_faults(configuration: Configuration, networks: Networks) -> list[FieldError]:
    """Chains that no network describes or that are only read, testnets in production, real money
    beside simulations."""
    faults = []
    for number, chain in configuration.chains.items():
        network = networks.get(int(number))
        is_read_only = any(url.startswith(tuple(READABLE_USDC)) for url in chain.urls)
        if network is None and not is_read_only:
            message = f"is not a known network: describe it in networks.{number}"
            faults.append(FieldError(f"chains.{number}", message))
        elif network is not None and is_read_only:
            message = f"is only read, and has no Payments: remove networks.{number}"
            faults.append(FieldError(f"chains.{number}", message))
        elif network is not None and network.is_testnet and configuration.mode == "production":
            message = f"is the testnet {network.name}: its money has no value"
            faults.append(FieldError(f"chains.{number}", message))
        elif network is not None and not network.is_testnet and configuration.simulated_chains:
            faults.append(FieldError(f"chains.{number}", REAL_BESIDE_SIMULATED))
    return [*faults, *_find_generation_faults(configuration)]


def _find_generation_faults(configuration: Configuration) -> list[FieldError]:
    """Chains of our contracts whose generation is not that of the first one."""
    generations = {
        number: chain.settings.get("generation", "2")
        for number, chain in configuration.chains.items()
        if "admin" in chain.settings
    }
    first, required = next(iter(generations.items()), ("", ""))
    message = f"must be that of chains.{first}, {required}: an account has one address on all"
    return [
        FieldError(f"chains.{number}.settings.generation", message)
        for number, generation in generations.items()
        if generation != required
    ]


class _BadTable(Exception):
    """A table of a network whose values do not fit together."""

    def __init__(self, path: str, error: ValueError) -> None:
        super().__init__(path)
        self.fault = FieldError(path, f"cannot be used: {error}")


def _merge_network(chain_id: int, known: Network | None, given: NetworkSettings) -> Network:
    """The network with what the configuration says of it. Raises _BadTable."""
    path = f"networks.{chain_id}"
    known = known or Network(
        chain_id=chain_id, name="", tokens=(), rpc_url="", native_currency=ETHER
    )
    tokens = (*_make_assets(chain_id, given.tokens), *known.tokens)
    credited = {token.address.lower() for token in tokens}
    watched = (*_make_assets(chain_id, given.watch_list), *known.watch_list)
    values: dict[str, Any] = {
        "name": given.name,
        "chain_type": given.chain_type,
        "rpc_url": given.rpc_url,
        "explorer_url": given.explorer_url,
        "is_testnet": given.is_testnet,
        "block_ms": given.block_ms,
        "finalized_s": given.finalized_s,
    }
    if given.native_currency is not None:
        values["native_currency"] = NativeCurrency(**attrs.asdict(given.native_currency))
    if given.fees is not None:
        values["fees"] = _make(f"{path}.fees", FeePolicy, given.fees)
    if given.acceptance:
        values["acceptance"] = tuple(
            _make(f"{path}.acceptance[{place}]", Acceptance, row)
            for place, row in enumerate(given.acceptance)
        )
        values["acceptance_source"] = "the configuration"
    return attrs.evolve(
        known,
        tokens=tokens,
        watch_list=tuple(token for token in watched if token.address.lower() not in credited),
        **{name: value for name, value in values.items() if value is not None},
    )


def _make_assets(chain_id: int, given: tuple[TokenSettings, ...]) -> tuple[Asset, ...]:
    return tuple(Asset(chain_id, one.symbol, one.address, one.decimals) for one in given)


def _make(path: str, kind: Any, given: Any) -> Any:
    try:
        return kind(**attrs.asdict(given))
    except ValueError as error:
        raise _BadTable(path, error) from error
