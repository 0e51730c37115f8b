"""One fit of a comparison: its penalty chosen, its warnings kept as sentences, its proof in a few words, and Ctrl-C obeyed."""

from __future__ import annotations

import math
import signal
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from separatrix.comparison.families import ModelFamily
from separatrix.comparison.folds import UNRELATED, Related
from separatrix.data.block import Codes, Float
from separatrix.errors import Message, message_of
from separatrix.geometry.programmes import Deadline, OutOfTime, aside
from separatrix.models.svm.svc import SVC
from separatrix.result import ConvergenceWarning, Fit, Status

_CLOSED = {
    Status.EXACT: "exact, closed form",
    Status.PSEUDO: "exact, where the rows vary",
    Status.RANK_DEFICIENT: "exact, of least norm",
}


Note = tuple[Any, str]
"""A warning as a sentence, behind its kind: warnings of one kind differ in their numbers only."""


@dataclass(frozen=True)
class Trained:
    """A fitted estimator, the parameters chosen for it, how long both took, and what was warned of."""

    estimator: Any
    parameters: dict[str, Any]
    seconds: float
    notes: list[Note]


def train(
    family: ModelFamily,
    build: Callable[..., Any],
    X: Any,
    y: Codes,
    seed: int,
    parameters: dict[str, Any] | None = None,
    limit: float | Deadline = math.inf,
    weights: Float | None = None,
    related: Related = UNRELATED,
) -> Trained:
    """Choose the parameters of a family, unless they are given, and fit it, within a limit in seconds.

    Rows that are related are kept together by the folds of the choice, and by those of a calibration.
    """
    tune = family.tune if build is family.build else family.tune_beyond

    chosen: dict[str, Any] = {}

    def fit() -> Any:
        chosen.update(tune(X, y, seed, weights, related) if parameters is None else parameters)
        estimator = build(**chosen)
        options: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
        if isinstance(estimator, SVC) and (together := related.together(y)) is not None:
            options["groups"] = together
        return estimator.fit(X, y, **options)

    return recorded(fit, chosen, limit)


def recorded(fit_model: Callable[[], Any], chosen: dict[str, Any], limit: float | Deadline = math.inf) -> Trained:
    """A fit that gives an estimator, with its parameters, how long it takes and what it warns of; Ctrl-C ends it at once."""
    start = perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator = aside(lambda _: fit_model(), limit)
    seconds, fit = perf_counter() - start, getattr(estimator, "fit_", None)
    return Trained(estimator, chosen, seconds, [_note(one.message, fit) for one in caught])


def _note(warning: Warning | str, fit: Fit | None) -> Note:
    """A warning in words; for the fit that is kept, in those for the readers of a comparison."""
    if isinstance(warning, ConvergenceWarning):
        words = warning.fit.message(fit_sentence(fit) if fit is not None and warning.fit is fit else None)
        return (warning.estimator, warning.fit.status), Message.of(f"{warning.estimator}: ", words)
    text = message_of(warning) if isinstance(warning, Warning) else warning
    return tuple(word for word in text.split() if not any(map(str.isdigit, word))), text


def predictions(estimator: Any, X: Any) -> tuple[Codes, Float | None]:
    """Class codes, and probabilities where the model has them."""
    if not hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict(X), dtype=np.intp), None
    proba = estimator.predict_proba(X)
    return proba.argmax(axis=1), proba


def gathered(notes: list[Note]) -> list[str]:
    """One sentence for the warnings of each kind, the first."""
    first: dict[Any, str] = {}
    for kind, note in notes:
        first.setdefault(kind, note.on_one_line() if isinstance(note, Message) else " ".join(note.split()))
    return list(first.values())


def in_words(error: Exception, classes: NDArray[Any]) -> str:
    """Why a family failed, in a sentence that names classes by their labels; the models know them by number."""
    message = message_of(error)
    text = by_name(message, classes) if isinstance(message, Message) else " ".join(message.split())
    text = text or type(error).__name__
    return text if isinstance(error, ValueError | OutOfTime) else f"{type(error).__name__}: {text}"


def by_name(text: str, classes: NDArray[Any]) -> str:
    """A sentence of a model with the labels of the classes it is about."""
    return text.named(classes) if isinstance(text, Message) else text


def fit_sentence(fit: Fit) -> str:
    """The status of a fit in a sentence, without advice on parameters: these were chosen, and are listed elsewhere."""
    if fit.status is Status.EXACT:
        return Message.joined("Solved exactly, in closed form.", fit.detail)
    if fit.status is Status.SEPARATES:
        return f"After {fit.iterations} epochs the average of all rules has every training row on its side."
    if fit.status is Status.MISTAKES_LEFT and fit.certificate is not None:
        return (
            f"After {fit.iterations} epochs the average of all rules has {fit.certificate.gap:.0f} training rows on the wrong "
            "side; with more than two classes a row counts once for each class whose rule has it wrong."
        )
    return Message.joined(str(fit.status), fit.detail)


def certificate_of(estimator: Any, X: Any, y: Codes) -> str:
    """How good the fit to these rows is proven to be, in a few words."""
    fit: Fit | None = getattr(estimator, "fit_", None)
    if fit is None:
        return "exact, counts"
    if fit.status in _CLOSED:
        return _CLOSED[fit.status]
    if fit.status in (Status.SEPARATES, Status.MISTAKES_LEFT):  # of several machines each counts mistakes of its own
        wrong = int((estimator.predict(X) != y).sum())
        return f"no proof; {wrong} training row{'' if wrong == 1 else 's'} wrong" if wrong else "no training row wrong"
    gap = proven_gap(fit)
    early = "" if fit.status is Status.CONVERGED else "stopped early, "
    return "no proof of an optimum" if gap is None else f"{early}relative gap ≤ {_rounded_up(gap)}"


def proven_gap(fit: Fit) -> float | None:
    """The relative gap to the optimum of an iterative fit; None where nothing bounds it, or nothing need to."""
    if fit.certificate is None or fit.status in (*_CLOSED, Status.SEPARATES, Status.MISTAKES_LEFT):
        return None
    return fit.certificate.relative_gap if math.isfinite(fit.certificate.relative_gap) else None


def _rounded_up(gap: float) -> str:
    """One digit, never below the gap."""
    if gap <= 0.0:
        return "0"
    power = math.floor(math.log10(gap))
    digit = math.ceil(gap / 10.0**power * (1.0 - 1e-12))
    return f"{digit}e{power}" if digit < 10 else f"1e{power + 1}"


@contextmanager
def stoppable() -> Iterator[Callable[[], None]]:
    """Solvers answer Ctrl-C with the best they have so far; the check that this gives raises it again."""
    stopped = threading.Event()

    def check() -> None:
        if stopped.is_set():
            raise KeyboardInterrupt("The comparison was stopped.")

    previous = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous):
        yield check  # only the main thread may listen to signals
        return

    def note(number: int, frame: Any) -> None:
        stopped.set()
        previous(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, previous)


class Steps:
    """How far the work is; every step is a chance to stop."""

    def __init__(self, progress: Callable[[str, float], None] | None, check: Callable[[], None], total: int) -> None:
        self._progress, self._check, self._total, self._done = progress, check, total, 0

    def __call__(self, label: str) -> None:
        """What is done next."""
        self._check()
        if self._progress is not None:
            self._progress(label, self._done / self._total)
        self._done += 1

    def end(self) -> None:
        """All is done."""
        self._done = self._total
        self("done")
