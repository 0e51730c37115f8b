"""scikit-learn: the library we are a drop-in for, and so the peer of every workload."""

from __future__ import annotations

from benchmarks.contender import Peer

PEER = Peer("scikit-learn", distribution="scikit-learn", module="sklearn")
