"""Conditions on records: their type, their validation, their meaning, and the filters of document databases."""
