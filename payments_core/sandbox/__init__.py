"""The sandbox's own doors: its clock, its chains, its faucet (contract §11)."""
