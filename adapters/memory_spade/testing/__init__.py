"""Helpers for tests, examples and demos of agents with memory: an XMPP server and a scripted language model."""
