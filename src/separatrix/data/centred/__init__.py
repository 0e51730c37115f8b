"""Dense rows less their class means."""
