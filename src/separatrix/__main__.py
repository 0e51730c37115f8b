"""python -m separatrix script.py: run a script with scikit-learn's classes replaced by ours."""

from separatrix.drop_in.runner import main

if __name__ == "__main__":
    main()
