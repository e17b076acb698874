"""The storage in PostgreSQL; `adapter.py` is its entry."""
