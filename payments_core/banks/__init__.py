"""US bank transfers: the port to a bank, and the rules of the rails as tables."""
