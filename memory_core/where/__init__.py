"""Conditions on records: the value, its checks, its plain meaning, and the form that document databases use."""
