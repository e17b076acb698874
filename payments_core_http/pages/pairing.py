"""WalletConnect on the page: a link, and for a payer who has followed it a page that may load the
operator's script, and reach its relay and the network's node. No other page may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from payments_core.chains.port import NetworkKind
from payments_core.networks import Network
from payments_core_http.pages.transfer_request import PUBLIC_KINDS
from payments_core_http.pages.words import N_

if TYPE_CHECKING:
    from payments_core.settings import WalletConnect

ASKED = "walletconnect"
"""The `wallet` in the query of a page on which a payer has asked for it."""

PAIRING_WORDS: Mapping[str, str] = {
    "load": N_("Opening WalletConnect."),
    "scan": N_("Scan the code with your wallet, or open it in a wallet on this device."),
    "unloaded": N_("Nothing was sent: WalletConnect did not open. Try another way to pay."),
}
"""The script's messages in addition to WALLET_WORDS."""


@attrs.frozen(kw_only=True)
class Pairing:
    """How the script reaches a wallet by WalletConnect, if the payer `is_asking` for it; at
    `rpc_url` it reads the chain, which such a wallet does not do for it."""

    is_asking: bool
    project_id: str
    integrity: str
    relay_url: str
    rpc_url: str


def find_pairing(
    given: WalletConnect | None, kind: NetworkKind, network: Network | None, wallet: str | None
) -> Pairing | None:
    """None without WalletConnect, and where no wallet must be led to the public network; `wallet`
    is what the payer has asked for."""
    if given is None or network is None or kind not in PUBLIC_KINDS:
        return None
    if not network.rpc_url.startswith("https://"):
        return None
    return Pairing(
        is_asking=wallet == ASKED,
        project_id=given.project_id,
        integrity=given.integrity,
        relay_url=given.relay_url,
        rpc_url=network.rpc_url,
    )
