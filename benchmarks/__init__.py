"""Benchmarks against other libraries: `python -m benchmarks.run`. See README.md."""
