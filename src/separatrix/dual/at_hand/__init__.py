"""Machines whose rows are in memory at once and few: compiled calls that return with the proof."""
