"""Checks and plain values that everything else is made of."""
