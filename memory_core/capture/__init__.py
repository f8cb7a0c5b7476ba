"""From messages to drafts: what of a conversation is worth a memory. Pure functions; nothing here reads or writes."""
