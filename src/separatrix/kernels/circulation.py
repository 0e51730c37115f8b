"""The largest part of a flow between classes that a walk finds to be made of cycles.

A sum of cycles gives every class what it takes from it: a circulation, whatever the sizes of the cycles. Edges are walked until
a class comes up again; the least edge of that cycle is taken from all of it. A class without a way out has its way in removed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from separatrix.kernels import compiled


@compiled()
def cycles(flow: Any) -> Any:
    """(K, K) a sum of cycles below `flow` (K, K), a non-negative matrix, which is used up."""
    K = len(flow)
    kept, path, place, ahead = np.zeros((K, K)), np.empty(K + 1, np.int64), np.full(K, -1), np.zeros(K, np.int64)
    for start in range(K):
        depth = 0
        path[0], place[start] = start, 0
        while depth >= 0:
            here = path[depth]
            while ahead[here] < K and not flow[here, ahead[here]] > 0.0:
                ahead[here] += 1
            if ahead[here] == K:  # no way out: back, and that edge is gone
                place[here] = -1
                depth -= 1
                if depth >= 0:
                    flow[path[depth], here] = 0.0
                continue
            there = ahead[here]
            if place[there] < 0:
                depth += 1
                path[depth], place[there] = there, depth
                continue
            least = flow[here, there]
            for at in range(place[there], depth):
                least = min(least, flow[path[at], path[at + 1]])
            first = place[there]
            for at in range(first, depth + 1):
                one, two = path[at], path[at + 1] if at < depth else there
                kept[one, two] += least
                flow[one, two] -= least
            for at in range(first + 1, depth + 1):
                place[path[at]] = -1
            depth = first
    return kept
