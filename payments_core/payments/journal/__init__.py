"""The journal of a Payment: where its money is, in double entry."""
