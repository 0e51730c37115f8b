"""Columns of mixed kinds: files read, columns named for what they are, and encoded as numbers."""
