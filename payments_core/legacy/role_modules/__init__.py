"""Role modules of vaults: put in place by two transactions, once the vault's owner has signed."""
