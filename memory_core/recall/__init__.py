"""Recall memories about a question as a block for a prompt: without repetition, within a budget, marked as data."""
