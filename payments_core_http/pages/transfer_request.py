"""What a payer is asked to send: in words, to copy, as codes to scan and as links of wallets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from urllib.parse import urlencode

import attrs
import markupsafe

from payments_core.chains.port import NetworkKind
from payments_core.explorers import Explorer
from payments_core.money import format_amount
from payments_core.networks import Asset, Network, Networks
from payments_core.payments.checkout.checkout import CheckoutPage
from payments_core_http.pages.languages import Language
from payments_core_http.pages.qr_codes import render_qr_code

PUBLIC_KINDS: tuple[NetworkKind, ...] = ("real", "testnet")
"""Where a payment request is a link and a code, and a wallet may add the network. Nothing compares
the network that these lead to: it is the public one, whatever the sandbox has instead."""

_TRUST_COINS: Mapping[int, int] = {
    1: 60, 10: 10_000_070, 137: 966, 8453: 8453, 42161: 10_042_221,
}  # fmt: skip
"""Trust Wallet's number of a chain's coin (its "universal asset id", after SLIP-44)."""


@attrs.frozen(kw_only=True)
class WalletLink:
    """A link that opens the request in the app of a wallet, by the wallet's own name.

    It holds what the codes hold, and not the address of the page: the site of the wallet, which a
    browser asks where the app is not installed, must not learn that.
    """

    wallet: str
    url: str


@attrs.frozen(kw_only=True)
class RequestCodes:
    """EIP-681's request to pay, as a link and as a code, and the code of the address alone."""

    payment_uri: str
    payment_code: markupsafe.Markup
    address_code: markupsafe.Markup
    wallet_links: tuple[WalletLink, ...]


@attrs.frozen(kw_only=True)
class TransferRequest:
    """What to send, where, and how.

    `typed_amount` is the amount as wallets take it. The script pays with `amount_atomic`, and
    compares `decimals` with what the wallet's network has. `network` says if it is a test network,
    `network_name` is the name alone. `codes` is None where wallets must not be led to the network,
    and so is `add_chain`, with which a wallet can add it (EIP-3085), as JSON. `to_url` and
    `token_url` are the explorer's pages of the two addresses.
    """

    amount: str
    typed_amount: str
    amount_atomic: int
    decimals: int
    symbol: str
    network: str
    network_name: str
    chain_id: int
    token_address: str
    token_url: str | None
    to: str
    to_url: str | None
    codes: RequestCodes | None
    add_chain: str | None


def build_request(
    page: CheckoutPage,
    language: Language,
    network: str,
    networks: Networks,
    kind: NetworkKind,
    explorer: Explorer,
) -> TransferRequest:
    """The request for what is due; `network` is its name for the reader."""
    payment, asset = page.payment, page.payment.asset
    known = networks.get(asset.chain_id)
    to = payment.escrow_address
    assert to is not None, "nothing is due without an escrow"
    is_public = kind in PUBLIC_KINDS
    return TransferRequest(
        amount=language.format_amount(page.due_atomic, asset),
        typed_amount=format_amount(page.due_atomic, asset.decimals),
        amount_atomic=page.due_atomic,
        decimals=asset.decimals,
        symbol=asset.symbol,
        network=network,
        network_name=networks.name_network(asset.chain_id),
        chain_id=asset.chain_id,
        token_address=asset.address,
        token_url=explorer.link_address(asset.address),
        to=to,
        to_url=explorer.link_address(to),
        codes=_build_codes(asset, to, page.due_atomic) if is_public else None,
        add_chain=_describe_chain(known) if is_public and known is not None else None,
    )


def _build_codes(asset: Asset, to: str, amount: int) -> RequestCodes:
    call = f"{asset.address}@{asset.chain_id}/transfer?address={to}&uint256={amount}"
    uri = f"ethereum:{call}"
    return RequestCodes(
        payment_uri=uri,
        payment_code=render_qr_code(uri),
        address_code=render_qr_code(to),
        wallet_links=tuple(_list_wallet_links(asset, to, amount, call)),
    )


def _list_wallet_links(asset: Asset, to: str, amount: int, call: str) -> list[WalletLink]:
    """The links that wallets document: MetaMask in "Use deeplinks", Trust in "Deep Linking"."""
    links = [WalletLink(wallet="MetaMask", url=f"https://link.metamask.io/send/{call}")]
    coin = _TRUST_COINS.get(asset.chain_id)
    if coin is not None:
        facts = {
            "asset": f"c{coin}_t{asset.address}",
            "address": to,
            "amount": format_amount(amount, asset.decimals),
        }
        url = f"https://link.trustwallet.com/send?{urlencode(facts)}"
        links.append(WalletLink(wallet="Trust Wallet", url=url))
    return links


def _describe_chain(network: Network) -> str | None:
    """The parameter of `wallet_addEthereumChain` (EIP-3085), which wants https alone."""
    if not network.rpc_url.startswith("https://"):
        return None
    explorer_urls = [] if network.explorer_url is None else [network.explorer_url]
    return json.dumps({
        "chainId": hex(network.chain_id),
        "chainName": network.name,
        "rpcUrls": [network.rpc_url],
        "nativeCurrency": attrs.asdict(network.native_currency),
        **({"blockExplorerUrls": explorer_urls} if explorer_urls else {}),
    })  # fmt: skip
