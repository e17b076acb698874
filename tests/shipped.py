"""The shipped mainnets, by which tests name chains and tokens."""

from __future__ import annotations

from payments_core.networks import shipped_networks

CHAINS = shipped_networks().keep_served(())
WATCH_LIST = tuple(token for network in CHAINS.values() for token in network.watch_list)

chain_entry = CHAINS.find_network
asset_of = CHAINS.find_asset
token_of = CHAINS.find_token
known_tokens = CHAINS.list_tokens
