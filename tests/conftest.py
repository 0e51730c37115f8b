"""Property tests draw the same examples every time; `HYPOTHESIS_PROFILE=explore` draws new ones, as many as time allows."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None, max_examples=100_000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
