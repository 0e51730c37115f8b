"""Any margin loss under any of the usual penalties."""
