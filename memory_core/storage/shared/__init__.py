"""The rules that every store follows; nothing here knows a database."""
