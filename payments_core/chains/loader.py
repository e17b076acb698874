"""Opening a chain by the URLs of its nodes: adapters are found by the entry-point group below.

A node's URL begins with the adapter's name and a `+`: `evm+https://node.example`. An adapter's
`open_chain` is called with the chain's number, the URLs without that, and keywords: `settings`,
which are its own, `signer`, and `network`, the registry's description of the chain. It returns a
Chain without asking a node, so that a service starts though nodes are down; the chain's `check`, if
it has one, and every answer verify that they are the right ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import attrs

from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.chains.port import Chain, Heads
from payments_core.chains.rotated_signer import OperatorSigner
from payments_core.clock import Instant
from payments_core.networks import Network

GROUP = "payments_core.chains"
SIGNERS = "payments_core.signers"
"""The group of signers: `open_url(url)` returns a signer for the chain's adapter."""


@runtime_checkable
class Checkable(Protocol):
    """A chain that can check whether its nodes and contracts are the right ones."""

    def check(self) -> None:
        """Raises ChainMismatch if they are wrong, ChainUnavailable if too few answer."""


@runtime_checkable
class BeginsOnSight(Protocol):
    """A chain that starts at its first use, and that can report whether it has started."""

    def find_heads(self) -> Heads | None:
        """The newest and the newest final block; None if it has not started. Writes nothing."""


@attrs.frozen
class NodeCheck:
    """What was found of one node, by its name. `remedy` is empty if it is all right.

    Without `is_fault` the service works with such a node, but more slowly or not for everything.
    """

    node: str
    is_right: bool
    says: str
    remedy: str = ""
    is_fault: bool = True


@attrs.frozen
class SignerCheck:
    """What was found of the key of an environment's operator, with the current signer or a former.

    `sound`: a signature was made, and recovered to the address. `refused`: the signer has no such
    key, or must not use it. `silent`: the key service did not answer. `wrong`: the signature is by
    another key or of other data, and nothing may be signed. `says` is why it is not sound.
    """

    environment_id: str
    is_former: bool
    state: Literal["sound", "refused", "silent", "wrong"]
    address: str | None = None
    says: str = ""


@runtime_checkable
class ChecksSigners(Protocol):
    """A chain that can check its signers."""

    def check_signers(self, environment_ids: Iterable[str]) -> Iterator[SignerCheck]:
        """Sign, recover and compare with each signer, for each of these environments.

        Once a signer is silent its other environments are left out. The first finding raises
        WrongSignature if the curve library itself is wrong.
        """


@runtime_checkable
class ChecksOperators(Protocol):
    """A chain whose contracts let an operator move money only once their admin has allowed it."""

    def find_refused_operators(self, environment_ids: Iterable[str]) -> Mapping[str, str]:
        """The operators that are not allowed now, by their environments.

        Environments without a key are left out. Raises ChainUnavailable.
        """


@runtime_checkable
class ChecksNodes(Protocol):
    """A chain that can say of each of its nodes what it can do."""

    def check_nodes(self, now: Instant) -> Iterator[NodeCheck]:
        """Every finding, as it is made; one node after the other."""


def open_chain(
    chain_id: int,
    urls: Sequence[str],
    *,
    signer: Any = None,
    settings: Mapping[str, str] | None = None,
    network: Network | None = None,
) -> Chain:
    """The chain behind these nodes; `network` is the shipped one of that id, unless given.

    Raises UnknownAdapter for a scheme that no adapter serves, ImportError if an adapter's
    driver is not installed, and ValueError for what the adapter cannot read, or if it opens
    no chain.
    """
    schemes = {url.partition("+")[0] if "+" in url.partition(":")[0] else "" for url in urls}
    if len(schemes) != 1:
        raise ValueError("the node URLs of a chain must use one adapter, such as evm+https://…")
    (scheme,) = schemes
    hint = " (write the URL of a node as evm+https://…)"
    plain = [url.partition("+")[2] for url in urls]
    opened: Chain = load_adapter(GROUP, scheme, "chain adapter", hint)(
        chain_id, plain, signer=signer, settings=settings or {}, network=network
    )
    require_port(opened, Chain, scheme, "chain adapter")
    if opened.chain_id != chain_id:
        raise ValueError(
            f"the chain adapter for {scheme!r} opens chain {opened.chain_id}, not {chain_id}"
        )
    return opened


def open_signer(url: str) -> Any:
    """The signer that a URL names: `file:///etc/payments/operator.key`, or a key service's.

    Raises UnknownAdapter, ImportError, ValueError if nothing is opened, and the errors of the
    adapter: ValueError, SignerRefused.
    """
    scheme = scheme_of(url)
    opened = load_adapter(SIGNERS, scheme, "signer")(url)
    if opened is None:
        raise ValueError(f"the signer for {scheme!r} returned no object")
    require_port(opened, OperatorSigner, scheme, "signer")
    return opened
