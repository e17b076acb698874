"""How a payer pays by a vault: options, the selection, one authorization, one transfer."""
