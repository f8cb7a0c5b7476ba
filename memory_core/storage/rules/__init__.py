"""What a write means, once for every store that has transactions: plain functions over the rows of one owner."""
