"""The dated contracts that this release serves, and how each differs from the next newer one.

`versions.py` has the table of dates, `changes.py` what a date may say. The date of today's shape
says nothing; each older date has a module of its own, named by its date.
"""
