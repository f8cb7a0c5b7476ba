"""The command line: `memory-core` and `python -m memory_core`. Needs the extra `cli`."""
