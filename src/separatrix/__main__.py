"""python -m separatrix script.py: run a script with scikit-learn's classes replaced by ours."""

import gc

if __name__ == "__main__":
    gc.disable()  # all that is imported stays: searching it for garbage would take a tenth of the imports
    from separatrix.drop_in.runner import main

    main()
