"""Classes in an order: one score, and thresholds between the classes."""
