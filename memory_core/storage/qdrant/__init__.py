"""The scale-out store: a Qdrant server, cluster or cloud. `store.py` is the file to read.

Importing `memory_core.storage.qdrant.store` loads qdrant_client (about a second); importing this package does not.
"""
