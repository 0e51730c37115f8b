"""python -m separatrix script.py: run a script with scikit-learn's classes replaced by ours."""

import gc
from importlib import import_module

if __name__ == "__main__":
    gc.disable()  # all that is imported stays: searching it for garbage would take a tenth of the imports
    from separatrix.lazy import with_room

    with_room(lambda: import_module("separatrix.drop_in.runner").main())
