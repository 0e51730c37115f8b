"""Methods as textbooks write them, for those who want to watch them: see fixed_rate.py; `IRLS` is in ../newton.py."""
