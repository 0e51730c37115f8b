"""Scripts of scikit-learn's own gallery, run as they are: by scikit-learn, and under `python -m separatrix`."""
