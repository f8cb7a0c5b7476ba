"""Moves of memories between stores."""
