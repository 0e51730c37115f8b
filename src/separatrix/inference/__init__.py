"""Standard errors, tests, intervals and summaries of estimates."""
