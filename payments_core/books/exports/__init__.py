"""The forms in which a period of the books leaves: CSV, beancount, SQLite."""
