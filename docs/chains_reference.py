"""Prints the chains and assets that the service knows."""

from __future__ import annotations

from docs.markdown import code, table
from payments_core.addresses import NATIVE_ADDRESS
from payments_core.networks import DEFAULT_CHAIN_ID, DEFAULT_SYMBOL, shipped_networks

NETWORKS = shipped_networks()


def page() -> str:
    """Each chain, and each token with its contract."""
    default = NETWORKS[DEFAULT_CHAIN_ID]
    return "\n\n".join(
        [
            "# Chains and assets",
            "These are the chains and tokens that the service knows from the start.\n"
            "A deployment serves the chains for which it has nodes; a sandbox simulates all except"
            " the testnets.\n"
            "`GET /sdk/v1/supported-chains` lists them with `isActive`, which says whether this"
            " deployment serves the chain.",
            "A Payment without `chainId` and `assetSymbol` uses the recipient's settlement"
            f" preference, or {DEFAULT_SYMBOL} on {default.name} ({DEFAULT_CHAIN_ID}) if the"
            " recipient has none.",
            "## Chains",
            table(
                ("Chain", "`chainId`", "Kind", "Testnet", "Fees in", "Explorer"),
                (
                    (
                        entry.name,
                        code(str(entry.chain_id)),
                        code(entry.chain_type),
                        "yes" if entry.is_testnet else "no",
                        entry.native_currency.symbol,
                        f"<{entry.explorer_url}>" if entry.explorer_url else "none",
                    )
                    for entry in NETWORKS.values()
                ),
            ),
            "An account has a vault on each of them that is served, at the same address on all.\n"
            "[Networks, tokens and acceptance](../how-to/networks.md) says how to add others.\n"
            "The page about [finality](finality.md) says when a block counts as final, and"
            " [Serve an EVM chain](../how-to/serve-an-evm-chain.md) says what a deployment needs.",
            "## Assets",
            "The service uses the addresses and decimals of this table, never those that a contract"
            " reports: a token with the same symbol at another address does not count.",
            table(
                ("Asset", "Chain", "Decimals", "Contract"),
                (
                    (asset.symbol, entry.name, str(asset.decimals), code(asset.address))
                    for entry in NETWORKS.values()
                    for asset in entry.tokens
                ),
            ),
            "## Watch list",
            "Payers send these tokens by mistake, and the service notices them.\n"
            f"So it is with the native coin of every EVM chain, whose contract is called"
            f" {code(NATIVE_ADDRESS)}, with 18 decimals.\n"
            "They count for no Payment, and no account is credited with them:"
            " [something else arrived](../how-to/troubles/misdirected.md) says what happens then.",
            table(
                ("Token", "Chain", "Decimals", "Contract"),
                (
                    (
                        asset.symbol,
                        entry.name,
                        str(asset.decimals),
                        code(asset.address),
                    )
                    for entry in NETWORKS.values()
                    for asset in entry.watch_list
                ),
            ),
            "## Amounts",
            "An amount is a decimal string with at most as many decimals as its asset has, such as"
            " `25.00` or `25.000001` of USDC; `amountAtomic` is the same amount in the smallest"
            " unit, `25000001`.\n"
            "Solana and Aptos wallets can be linked, and their USDC balances can be read; Payments"
            " use only the chains above.",
        ]
    )
