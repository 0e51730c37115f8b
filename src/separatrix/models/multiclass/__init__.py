"""Many classes by machines for two: one against the rest, one against one."""
