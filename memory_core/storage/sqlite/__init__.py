"""The embedded store: one SQLite file with records, full text, vectors and the change log.

Read `schema.py` first, then `store.py`.
"""
