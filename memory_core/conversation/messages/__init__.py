"""The messages of a conversation: they become drafts, and each is stored once."""
