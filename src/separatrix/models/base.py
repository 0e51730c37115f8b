"""What all estimators share: one template for every fit, reading input, scikit-learn's conventions.

fit:  check parameters → read rows → label them → solve → publish → warn           a refused fit leaves the model as it was
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import isfunction
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from separatrix.data import Block, Source, as_source
from separatrix.data.block import Float
from separatrix.data.checks import check_rows, check_unmasked, real_numbers
from separatrix.data.device.tensors import on_device
from separatrix.data.dispatch import array_source, files_there, is_elsewhere, moved_source, named_table, source_of
from separatrix.data.frames import as_table, is_frame
from separatrix.data.labels import listed
from separatrix.data.source import COPIED_BYTES, rows_per_block
from separatrix.models.checkpoint import Checkpoint, checkpointed
from separatrix.models.docstrings import described
from separatrix.models.elsewhere import answers_elsewhere
from separatrix.models.progress import shown_passes
from separatrix.models.scikit_learn import check_parameters
from separatrix.models.stopwatch import Stopwatch
from separatrix.result import ConvergenceWarning, Fit
from separatrix.settings import config, one_blas_thread, outside

OptionalArray = ArrayLike | None
_FEW_ROWS = 512
_CONSTANTS = (bool, int, float, str, type(None))
# Methods that answer row by row: for rows that an engine has, the answer is a collection of the engine.
_OF_ROWS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")


@dataclass(frozen=True)
class FitCall:
    """The arguments of one call of `fit`, its stopwatch, and the rule (classes, W, b) that a warm start begins with."""

    X: Any
    y: Any
    sample_weight: Any
    options: Mapping[str, Any]
    watch: Stopwatch
    before: tuple[NDArray[Any], Float, Float] | None


class Estimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Reading rows from anything, fitting, and describing the fit.

    An estimator defines `_solve`, and what is its own of `_check_parameters`, `_read_rows`, `_label` and `_warn`.
    """

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    fit_: Fit
    warned_as = ""  # the first words of a warning that the fit fell short; the name of the class if there are none
    # scikit-learn's estimator of the same name answers rows of float32 in float32 if it was fitted on such rows. The
    # coefficients that a certificate is about stay as they were found, in float64.
    _keeps_single = False
    _fitted_on_single = False
    _fitted_in_spark = False
    _encoding: Any = None
    """How the columns of a table in files were read and encoded, where the model was fitted to one."""
    _of_some_fits: ClassVar[tuple[str, ...]] = ()
    """Attributes that only some fits set, which the next fit therefore has to remove."""
    _names: ClassVar[list[str] | None] = None
    """The names of the parameters, once they were asked for: to read them off the constructor takes longer than to predict."""
    _accepted: ClassVar[dict[str, Any]] = {}
    """For each parameter of the class the last value that was found to be valid, if it cannot change."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Public methods and properties compute on one BLAS thread, so that their bits do not depend on the number of threads;
        arguments that all methods share are described in their docstrings.
        """
        super().__init_subclass__(**options)
        cls._names, cls._accepted = None, {}
        for name, held in list(vars(cls).items()):
            if name.startswith("_"):
                continue
            if isfunction(held):
                method = one_blas_thread()(described(held))
                setattr(cls, name, answers_elsewhere(method) if name in _OF_ROWS else method)
            elif type(held) is property and held.fget is not None:
                setattr(cls, name, held.getter(one_blas_thread()(held.fget)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @described
    def fit(
        self, X: Any, y: OptionalArray = None, sample_weight: OptionalArray = None, *, checkpoint: Checkpoint = None
    ) -> Self:
        """Fit the model.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, checkpoint)

    def _fit(self, X: Any, y: Any, sample_weight: Any, checkpoint: Checkpoint = None, **options: Any) -> Self:
        """The template of every fit."""
        watch = Stopwatch()
        with one_blas_thread(), self._unchanged_if_refused():
            self._check_parameters()
            X = named_table(X)
            if is_elsewhere(X):
                if hasattr(X, "chunks") or hasattr(X, "columns"):  # delayed blocks may hold their targets
                    self._check_target(X, y)
                X, y, sample_weight = self._elsewhere(X, y, sample_weight), None, None
            self._fitted_in_spark = isinstance(X, Source) and X.from_spark
            call = FitCall(X, y, sample_weight, options, watch, self._before())
            for name in self._of_some_fits:
                self.__dict__.pop(name, None)
            if checkpoint is None and not isinstance(X, Source):
                self._train(call)
            else:
                with checkpointed(checkpoint, self, X, options), shown_passes(self, X):
                    self._train(call)
            self._warn()
        return self

    def _fit_part(self, X: Any, y: Any, sample_weight: Any, **options: Any) -> Self:
        """The template of every `partial_fit`."""
        with one_blas_thread(), self._unchanged_if_refused():
            self._check_parameters()
            X = named_table(X)
            if is_elsewhere(X):
                X, y, sample_weight = self._elsewhere(X, y, sample_weight), None, None
            self._fitted_in_spark = isinstance(X, Source) and X.from_spark
            self._add_rows(FitCall(X, y, sample_weight, options, Stopwatch(), None))
        return self

    def _elsewhere(self, X: Any, y: Any, sample_weight: Any) -> Source:
        """Rows that an engine has, as a source."""
        return as_source(X, y, sample_weight)

    def _add_rows(self, call: FitCall) -> None:
        """Learn from more rows, after those of earlier calls."""
        raise NotImplementedError  # every estimator with a `partial_fit` has its own

    def _train(self, call: FitCall) -> None:
        """Read the rows, label them, solve and publish."""
        before = call.X.passes if isinstance(call.X, Source) else None
        source = self._read_rows(
            call
        )  # of a table in files this may take a pass: the one that tells what its columns are
        call.watch.start_at(source.passes if before is None else min(before, source.passes))
        self._solve(self._label(source), call)
        if isinstance(source, Source) and source.place != "memory" and "fit_" in vars(self):
            self.fit_ = replace(self.fit_, engine=source.place)

    @contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """Whatever goes wrong inside, errors and Ctrl-C, leaves the attributes as they were."""
        known = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(known)
            raise

    def _check_parameters(self) -> None:
        """Refuse parameters that mean nothing, before a row is read."""
        self._validate_params()

    def _validate_params(self) -> None:
        """scikit-learn's checks, of the values that were not the last to pass them."""
        names, accepted = self._names or self._get_param_names(), self._accepted
        fresh = {
            name: getattr(self, name) for name in names if getattr(self, name) is not accepted.get(name, Estimator)
        }
        if fresh:
            check_parameters(self._parameter_constraints, fresh, type(self).__name__)
            self._accepted.update({name: value for name, value in fresh.items() if isinstance(value, _CONSTANTS)})

    @classmethod
    def _get_param_names(cls) -> list[str]:
        if cls._names is None:
            cls._names = super()._get_param_names()
        return cls._names

    def _before(self) -> tuple[NDArray[Any], Float, Float] | None:
        """Classes, coefficients and intercepts that a warm start begins with."""
        return None

    def _read_rows(self, call: FitCall) -> Source:
        self._check_target(call.X, call.y)
        return self._read(call.X, call.y, call.sample_weight, reset=True)

    def _check_target(self, X: Any, y: Any) -> None:
        if y is None and not isinstance(X, Source):
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")

    def _label(self, source: Source) -> Source:
        """The rows with the targets that `_solve` reads."""
        return source

    def _solve(self, source: Source, call: FitCall) -> None:
        """Solve, and set the fitted attributes, `fit_` among them."""
        raise NotImplementedError  # every estimator of the library has its own

    def _warn(self) -> None:
        """Warnings about a fit that stands."""

    def _warn_if_short(self, *, also: bool = False) -> None:
        if self.fit_.status.fell_short or also:
            warnings.warn(ConvergenceWarning(self.warned_as or type(self).__name__, self.fit_), stacklevel=outside())

    def _read(
        self,
        X: Any,
        y: OptionalArray = None,
        sample_weight: OptionalArray = None,
        *,
        reset: bool,
        multi_output: bool = False,
        numeric: bool = True,
    ) -> Source:
        """Any input as a source, checked by scikit-learn's rules for shapes and feature names. X is not copied."""
        if isinstance(X, Source):
            X = X if reset else self._columns_of(X)
            self._check_source(X, reset)
            source = as_source(X, y, sample_weight)
            return files_there(source, config.device) if reset else source
        if reset:
            self._encoding = None
        elif self._encoding is not None and is_frame(X):
            from separatrix.tables.frame_table import read_frame  # of models that were fitted to a table

            return self._read(read_frame(X, self._encoding), reset=False)
        chosen = config.device if is_plain(X) or _is_plain_sparse(X) else None
        if chosen is not None or on_device(X):
            source = source_of(X, y, sample_weight) if chosen is None else moved_source(X, y, sample_weight, chosen)
            self._check_source(source, reset)
            return source
        plain = is_plain(X)
        X = X if plain else as_table(check_rows(X))
        if (plain or _is_plain_sparse(X)) and self._fits_columns(X, reset):
            pass
        elif is_frame(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            rows, columns = (X.num_rows, X.num_columns) if hasattr(X, "num_rows") else X.shape
            if rows < 1 or columns < 1:
                raise ValueError(f"Found a table with {rows} sample(s) and {columns} feature(s); more are required.")
        else:
            # NaN and infinity are found in the result of the pass, at no cost, and reported by column.
            X = validate_data(self, X, reset=reset, accept_sparse=True, ensure_all_finite=False)
        if y is not None and getattr(getattr(y, "dtype", None), "kind", "") == "c":
            real_numbers(y, "y")
        check_unmasked(y, "y")
        if y is not None and not multi_output and not (type(y) is np.ndarray and y.ndim == 1):
            y = column_or_1d(y, warn=True)
        source = (array_source if plain else source_of)(X, y, sample_weight, numeric=numeric)
        if reset and self._keeps_single:
            self._fitted_on_single = source.dtype == np.float32
        return source

    def _columns_of(self, source: Source) -> Source:
        """The columns of the model, by name and in its own encoding."""
        return source.read_as(self._encoding, getattr(self, "feature_names_in_", None))

    def _fits_columns(self, X: Any, reset: bool) -> bool:
        """Whether plain numbers need none of scikit-learn's checks: no names then or now, as many columns as before."""
        if "feature_names_in_" in self.__dict__:
            return False
        if reset:
            self.n_features_in_ = X.shape[1]
        return self.__dict__.get("n_features_in_") == X.shape[1]

    def _as_given(self, X: Any, answer: Float) -> Float:
        """An answer in single precision where scikit-learn gives it so; it was computed in double precision."""
        if not (self._keeps_single and self._fitted_on_single):
            return answer
        with np.errstate(over="ignore", under="ignore"):
            return answer.astype(np.float32) if is_single(X) else answer

    def _check_source(self, source: Source, reset: bool) -> None:
        names = source.feature_names
        if reset:
            self._encoding = source.encoding
            self.n_features_in_ = source.n_features
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return
        if source.n_features != self.n_features_in_:
            raise ValueError(
                f"X has {source.n_features} features, but {type(self).__name__} is expecting {self.n_features_in_} "
                "features as input."
            )
        expected = getattr(self, "feature_names_in_", None)
        if names is not None and expected is not None and list(names) != list(expected):
            raise ValueError(
                "The feature names should match those that were passed during fit, in the same order: expected "
                f"{listed(expected)}, got {listed(names)}."
            )

    def _map_rows(self, X: Any, block_fn: Callable[[Block], Float], at_once: int | None = None) -> Float:
        """block_fn of all rows, joined, `at_once` at most; NaN and infinity in X are refused by column name."""
        self._check_ready()
        source = self._read(X, reset=False)
        if source.n_rows is not None and source.n_rows <= _FEW_ROWS:  # fewer than threads could share
            with np.errstate(invalid="ignore", over="ignore"):
                few = [block_fn(block) for block in source.blocks()]
            return self._checked_rows(
                source, few[0] if len(few) == 1 else (np.concatenate(few) if few else np.empty(0))
            )
        rows = rows_per_block(source.n_features, target=COPIED_BYTES)
        rows = rows if at_once is None else min(rows, at_once)
        if source.n_rows is None or source.engine is not None:
            parts = source.map(block_fn, rows)
            return self._checked_rows(source, np.concatenate(parts) if parts else np.empty(0))
        found: list[Float] = []
        lock, finite = Lock(), True

        def fill(_: int, block: Block) -> None:
            nonlocal finite
            part = block_fn(block)
            with lock:
                if not found:
                    found.append(np.empty((source.n_rows, *part.shape[1:]), dtype=part.dtype))
            # The workers touch the memory of the result first, and look at their parts while these are in cache.
            found[0][block.start : block.start + block.n] = part
            if not np.isfinite(part).all():
                finite = False  # written one way only: reading it first could undo another worker's finding

        source.share(fill, rows)
        return found[0] if found and finite else self._checked_rows(source, found[0] if found else np.empty(0))

    def _checked_rows(self, source: Source, result: Float) -> Float:
        if not len(result):
            raise ValueError("The data have no rows: at least one is needed.")
        if not np.isfinite(result).all():
            sentence = source.explain_non_finite()
            if sentence:
                raise ValueError(sentence)
        return result

    def _check_ready(self) -> None:
        pending = getattr(self, "_pending", "")
        if pending:
            raise NotFittedError(f"This {type(self).__name__} has seen too little data to predict: {pending}")
        if not hasattr(self, "fit_"):
            check_is_fitted(self, "fit_")

    def _answer_names(self, method: str) -> list[str]:
        """Names of the columns that a method's answers become in a data frame that stays where it is."""
        if method == "predict":
            return ["prediction"]
        word = {"predict_proba": "probability", "predict_log_proba": "log_probability"}.get(method, "score")
        classes = getattr(self, "classes_", None)
        if classes is None or (method == "decision_function" and len(classes) == 2):
            return [word]
        return [f"{word}_{label}" for label in classes.tolist()]

    def _beside(self, X: Any) -> Any:
        """What `transform` means in Spark: the data frame with columns of answers beside its own."""
        frame: Any = self.predict(X)
        return self.predict_proba(frame) if hasattr(self, "predict_proba") else frame

    def _column(self, j: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"column {j}" if names is None else f"column {names[j]!r}"


def is_plain(X: Any) -> bool:
    """Whether X is an array of real numbers with rows and columns: nothing about it is left to ask."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "fiub" and X.dtype.itemsize <= 8 and X.size > 0


def _is_plain_sparse(X: Any) -> bool:
    """The same of a sparse matrix whose indices were checked."""
    plain = issparse(X) and X.format == "csr" and len(X.shape) == 2 and X.dtype.kind in "fiub" and min(X.shape) > 0
    return bool(plain)


def is_single(X: Any) -> bool:
    """Whether all values of X are float32."""
    dtypes = {X.dtype} if hasattr(X, "dtype") else set(getattr(X, "dtypes", ()))
    return {str(dtype).lower() for dtype in dtypes} == {"float32"}
