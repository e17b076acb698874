"""Prints the chains and assets that the service knows."""

from __future__ import annotations

from docs.markdown import code, table
from payments_core.assets import CHAINS, DEFAULT_CHAIN_ID, DEFAULT_SYMBOL


def page() -> str:
    """Each chain, and each token with its contract."""
    default = CHAINS[DEFAULT_CHAIN_ID]
    return "\n\n".join(
        [
            "# Chains and assets",
            "The chains and tokens that the service knows; a deployment serves those that it has"
            " nodes for, and a sandbox simulates them all.\n"
            "`GET /sdk/v1/supported-chains` lists them with `isActive`, which says whether this"
            " deployment serves the chain.",
            f"Without `chainId` and `assetSymbol` a Payment is in the recipient's settlement"
            f" preference, and else in {DEFAULT_SYMBOL} on {default.name} ({DEFAULT_CHAIN_ID}).",
            "## Chains",
            table(
                ("Chain", "`chainId`", "Kind", "Fees in", "Explorer"),
                (
                    (
                        entry.name,
                        code(str(entry.chain_id)),
                        code(entry.chain_type),
                        entry.native_currency.symbol,
                        f"<{entry.explorer_url}>",
                    )
                    for entry in CHAINS.values()
                ),
            ),
            "An account has a vault on each of them, at the same address on all EVM chains.\n"
            "The page about [finality](finality.md) says when a block counts as final, and"
            " [Serve an EVM chain](../how-to/serve-an-evm-chain.md) says what a deployment needs.",
            "## Assets",
            "Addresses and decimals are those of this table, never what a contract reports:"
            " a token with the same symbol at another address does not count.",
            table(
                ("Asset", "Chain", "Decimals", "Contract"),
                (
                    (asset.symbol, entry.name, str(asset.decimals), code(asset.address))
                    for entry in CHAINS.values()
                    for asset in entry.assets
                ),
            ),
            "An amount is a decimal string with at most the decimals of its asset, such as `25.00`"
            " or `25.000001` of USDC; `amountAtomic` is the same in the smallest unit,"
            " `25000001`.\n"
            "Wallets of Solana and Aptos can be linked and shown a balance of USDC; Payments are"
            " on the chains above.",
        ]
    )
