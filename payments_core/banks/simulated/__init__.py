"""The sandbox's bank: it moves no money, and keeps the rules of the real rails."""
