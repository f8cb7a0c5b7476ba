"""From a question to a block for a prompt: what is remembered, each thing once, within a budget, marked as data."""
