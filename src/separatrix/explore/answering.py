"""Messages in, answers out: what the server and the notebook widget share. Nothing here knows how a message travels."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from separatrix.data.block import Codes, Float
from separatrix.explore.code import code_of
from separatrix.explore.datasets import dataset, gaussians, titles
from separatrix.explore.drawing import fact, lines
from separatrix.explore.extras import extras_of
from separatrix.explore.families import FAMILIES
from separatrix.explore.films import film
from separatrix.explore.fitting import REJECTED, FittedRule, fit
from separatrix.explore.measures import measures
from separatrix.explore.plane_table import PlaneTable
from separatrix.explore.protocol import BadRequest, ExplorerState, PlanePoints, plain, read_state
from separatrix.explore.surfaces import Contours, draw, leads


class Conversation:
    """One page: the points it sent last, and the last fit of each of its panels.

    Parameters
    ----------
    table : PlaneTable, optional
        The table that the page opens with.

    Examples
    --------
    >>> from separatrix.explore.answering import Conversation
    >>> page = Conversation()
    >>> blobs = page.answer({"kind": "dataset", "name": "blobs"})
    >>> asked = {"kind": "fit", **blobs, "model": {"family": "lda"}} | {"kind": "fit"}
    >>> page.answer(asked)["fit"]["status"]
    'EXACT'
    """

    def __init__(self, table: PlaneTable | None = None) -> None:
        self.table = table
        self.points: PlanePoints | None = None
        self._read = 0
        self.fitted: dict[int, FittedRule] = {}

    def read(self, message: Mapping[str, Any]) -> ExplorerState | None:
        """The state of a message that has one. Moves refer to the points sent last: read messages in their order."""
        if message.get("kind") not in ("fit", "film", "code"):
            return None
        self._read += 1
        state = read_state(message, self.points, self._read)
        self.points = state.points
        return state

    def answer(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a message; of one that cannot be answered, a sentence."""
        return guarded(message, lambda: self.work(message, self.read(message)))

    def work(self, message: Mapping[str, Any], state: ExplorerState | None) -> dict[str, Any]:
        """What is computed for a message whose state was read."""
        kind = message.get("kind")
        if state is not None:
            if kind == "film":
                return film(state)
            return {"code": code_of(state)} if kind == "code" else self._fit(state)
        if kind == "hello":
            own = None if self.table is None else {"target": self.table.target, "columns": self.table.names}
            families = [family.described() for family in FAMILIES.values()]
            return {"families": families, "datasets": titles(), "table": own}
        if kind == "dataset":
            seed = message.get("seed", 0)
            if not isinstance(seed, int) or not 0 <= seed < 2**31:
                raise BadRequest("The seed must be a whole number from 0.")
            return dataset(message.get("name"), message.get("columns"), seed, self.table)
        if kind == "probe":
            return self._probe(message)
        raise BadRequest(f"There are no messages of the kind {kind!r}.")

    def _fit(self, state: ExplorerState) -> dict[str, Any]:
        fitted = fit(state)
        drawn = draw(fitted)
        answer = {"panel": state.panel, **drawn, "fit": _record(fitted), "measures": measures(fitted)}
        answer["extras"] = [*extras_of(fitted), *_truth(fitted)]
        last = self.fitted.get(state.panel)
        if last is None or last.state.order <= state.order:  # else a newer fit has overtaken this one
            self.fitted[state.panel] = fitted
        return answer

    def _probe(self, message: Mapping[str, Any]) -> dict[str, Any]:
        fitted, at = self.fitted.get(message.get("panel", 0)), message.get("at")
        if fitted is None:
            raise BadRequest("Nothing has been fitted yet.")
        try:
            row = np.asarray(at, dtype=np.float64).reshape(1, 2)
        except (TypeError, ValueError):
            raise BadRequest("Give the place as two numbers.") from None
        if not np.isfinite(row).all():
            raise BadRequest("Give the place as two numbers.")
        probabilities, scores = fitted.probabilities(row), fitted.binary_scores(row)
        try:
            distance = float(np.ravel(fitted.model.signed_distance(row))[0]) if len(fitted.classes) == 2 else None
        except (AttributeError, TypeError, ValueError):  # a curved boundary has no such distance
            distance = None
        return {
            "panel": message.get("panel", 0),
            "action": int(fitted.predict(row)[0]),
            "probabilities": None
            if probabilities is None
            else dict(zip(map(str, fitted.classes), probabilities[0], strict=True)),
            "score": None if scores is None else float(scores[0]),
            "distance": distance,
        }


def guarded(message: Mapping[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The answer with the kind and the id of its message; where something is refused, the sentence."""
    head = {name: message[name] for name in ("kind", "id", "panel") if name in message}
    try:
        answer = work()
    except (
        ValueError,
        TypeError,
        ArithmeticError,
        np.linalg.LinAlgError,
    ) as error:  # the library's refusals are sentences
        answer = {"error": str(error)}
    return plain({**answer, **head})


def _record(fitted: FittedRule) -> dict[str, Any]:
    record = fitted.record
    answer: dict[str, Any] = {
        "seconds": fitted.seconds,
        "status": None,
        "sentence": "",
        "detail": "",
        "certificate": None,
    }
    if record is None:
        return answer
    certificate = record.certificate
    return answer | {
        "status": record.status.name,
        "sentence": str(record.status),
        "detail": str(record.detail),
        "iterations": record.iterations,
        "passes": record.passes,
        "severity": record.status.severity,
        "certificate": None
        if certificate is None
        else {"text": str(certificate), "gap": certificate.gap, "kind": certificate.kind},
    }


def _truth(fitted: FittedRule) -> list[dict[str, Any]]:
    """The boundary of the Bayes rule, and how often it agrees, where the densities are known."""
    state = fitted.state
    if state.truth is None:
        return []
    truth = gaussians(state.truth)
    contours = Contours(state.view, state.grid)
    z = leads(np.log(np.maximum(truth.predict_proba(contours.grid), 1e-300)))
    edges = [z[:, 1]] if z.shape[1] == 2 else z.T
    rows, codes, least = _new_points(json.dumps(state.truth))
    actions = fitted.predict(rows)
    error, rejected = np.mean((actions != codes) & (actions != REJECTED)), np.mean(actions == REJECTED)
    words = f"{100 * error:.3g} %{f' and {100 * rejected:.3g} % rejected' if rejected else ''}; Bayes rule {100 * least:.3g} %"
    return [
        lines("truth", [path for edge in edges for path in contours.level(edge)], label="Bayes rule"),
        fact("error on 10 000 new points", words),
    ]


@lru_cache(maxsize=4)
def _new_points(truth: str) -> tuple[Float, Codes, float]:
    """Points from known densities that no fit has seen, and how often the Bayes rule is wrong about them."""
    classes = gaussians(json.loads(truth))
    rows, codes = classes.sample(10_000, random_state=1)
    return rows, codes, float(np.mean(np.asarray(classes.predict_proba(rows)).argmax(axis=1) != codes))
