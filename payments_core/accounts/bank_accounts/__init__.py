"""US bank accounts to which an account can be paid out (contract §7)."""
