"""A conversation, under every adapter: what was said, and what is recalled; read `conversation.py` first."""
