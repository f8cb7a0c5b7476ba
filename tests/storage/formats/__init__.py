"""A memory file of every format that was released, which later versions have to open: `0.1.db.gz` and so on."""
