"""What of the regulated bank flows an account may use (contract §7)."""
