"""Sessions, which are receive Payments in the older vocabulary, and the disputes about them."""
