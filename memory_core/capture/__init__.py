"""Turn the messages of conversations into drafts, and store each message once."""
