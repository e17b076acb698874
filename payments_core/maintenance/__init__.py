"""Upkeep: what an operator does with a whole deployment, past any one tenant.

Copying to another storage, sealing anew under another master key, forgetting what is old, and
putting parked jobs back to work. Copies of an SQLite file are in `storage/sqlite/backups.py`.
Damage in one row does not stop it: what cannot be read is passed over with an alarm, except by a
copy, which must be whole.
"""
