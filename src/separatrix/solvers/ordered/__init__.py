"""Methods for classes in an order."""
