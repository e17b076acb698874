"""US bank accounts that an account can be paid out to (contract §7)."""
