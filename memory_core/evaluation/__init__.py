"""How well a memory answers questions of your own: beside plain retrievers, in blocks, and in silence."""
