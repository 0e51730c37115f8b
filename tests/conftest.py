"""What every test has: the same examples each time, and arithmetic on one thread.

Property tests draw the same examples every time; `HYPOTHESIS_PROFILE=explore` draws new ones, as many as time allows.
The suite runs on as many processes as there are cores, so a BLAS that started threads in each of them would mostly wait
for itself: small problems took four times as long. Tests of threads ask for theirs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is loaded

from hypothesis import HealthCheck, settings  # which may load NumPy

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
