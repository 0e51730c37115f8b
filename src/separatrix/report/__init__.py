"""What one can look at."""
