"""A router over Circle's CCTP v2: USDC is burned on one chain, and minted on another."""
