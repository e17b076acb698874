"""Maintenance: an operator's work on a whole deployment, across tenants.

Copying to another storage, resealing under another master key, deleting old records, and
retrying parked jobs. Copies of an SQLite file are in `storage/sqlite/backups.py`.
Damage in one row does not stop it: unreadable rows are skipped with an alarm, except by a
copy, which must be complete.
"""
