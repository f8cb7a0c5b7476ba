"""The rules that every store follows; nothing here depends on a database."""
