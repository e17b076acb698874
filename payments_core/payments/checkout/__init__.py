"""What a payer sees without an account: links, public Payments, direct options."""
