"""Engines: rows that live in other processes. Each is a source that runs passes there; nothing else knows it."""
