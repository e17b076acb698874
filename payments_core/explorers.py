"""Links to the public explorers of networks, for people."""

from __future__ import annotations

from urllib.parse import quote

import attrs

from payments_core.networks import Network


@attrs.frozen
class Explorer:
    """An explorer, whose pages have the paths of EIP-3091; without a URL it links nothing."""

    url: str | None = None

    def link_transaction(self, hash: str) -> str | None:
        """The page of a transaction."""
        return self._link("tx", hash)

    def link_address(self, address: str) -> str | None:
        """The page of an address."""
        return self._link("address", address)

    def _link(self, kind: str, name: str) -> str | None:
        return None if self.url is None else f"{self.url}/{kind}/{quote(name, safe='')}"


NO_EXPLORER = Explorer()


def choose_explorer(network: Network | None) -> Explorer:
    """The explorer of a network, if it has one and is of the family that EIP-3091 is for."""
    if network is None or network.explorer_url is None or network.chain_type != "evm":
        return NO_EXPLORER
    return Explorer(network.explorer_url.rstrip("/"))
