"""The engine of a conversation, under every adapter: what its messages mean for the memory, and who waits how long."""
