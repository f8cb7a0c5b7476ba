"""The quality of a memory for questions of your own: beside plain retrievers, in blocks, and in silence."""
