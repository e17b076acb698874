"""The sandbox's own controls: its clock, its chains, its faucet (contract §11)."""
