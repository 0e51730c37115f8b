"""`separatrix fit`: one family, with the parameters given, on all rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.cli.progress import FileProgress, ProgressLine
from separatrix.cli.standard_input import given_table
from separatrix.cli.streaming import is_streamed, table_source
from separatrix.comparison.costs import read_loss
from separatrix.comparison.drift import profile
from separatrix.comparison.families import FAMILIES, build
from separatrix.comparison.fitting import by_name, fit_sentence, in_words
from separatrix.comparison.streamed_rows import ROWS_AT_HAND, TrainingRows, fit_shares
from separatrix.comparison.table_model import TableModel, learn_encoder
from separatrix.data.writing import destination
from separatrix.export.model_file import save_model
from separatrix.result import Status
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.findings import joined
from separatrix.tables.reading import read_table
from separatrix.tables.schema import TableSchema


def run(
    data: Path,
    target: str,
    name: str,
    settings: list[str],
    loss: Path | None,
    output: Path,
    stream: bool,
    quiet: bool,
) -> None:
    """Fit a model to a table and save it."""
    parameters = _parameters(settings)
    destination(output)  # before the work
    build(name, **parameters)  # a wrong name is refused before the table is read
    with given_table(data) as data, ProgressLine(quiet) as progress:
        if is_streamed(data, stream):
            model, fitted = _of_stream(data, target, name, parameters, loss, progress)
        else:
            model, fitted = _in_memory(data, target, name, parameters, loss)
        try:
            fitted()
        except ValueError as error:  # the estimator has the classes by number
            raise ValueError(in_words(error, np.asarray(model.schema.classes))) from error
    save_model(model, output)
    fit = getattr(model.estimator, "fit_", None)
    print(f"Fitted {FAMILIES[name].label}." if fit is None else by_name(fit_sentence(fit), model.classes_))
    if fit is not None and fit.certificate is not None and fit.status not in (Status.SEPARATES, Status.MISTAKES_LEFT):
        print(f"Certificate: {fit.certificate}")
    for finding in model.schema.findings:
        print(f"- {finding}")
    print(f"Wrote {output}.")


def _in_memory(
    data: Path, target: str, name: str, parameters: dict[str, Any], loss: Path | None
) -> tuple[TableModel, Callable[[], Any]]:
    """The model of a table that is held, and how it is fitted."""
    schema, rows, codes = TableSchema.infer_and_read(read_table(data), target)
    encoder, X = learn_encoder(schema, rows, codes) if FAMILIES[name].encoded else (None, schema.plain_frame(rows))
    model = _model(schema, encoder, name, parameters, loss)
    model.training = profile(rows, schema.prose)
    return model, lambda: model.estimator.fit(X, codes)


def _of_stream(
    data: Path, target: str, name: str, parameters: dict[str, Any], loss: Path | None, progress: ProgressLine
) -> tuple[TableModel, Callable[[], Any]]:
    """The model of a table that is read in a stream, and how it is fitted."""
    if name in ROWS_AT_HAND:
        raise ValueError(f"{FAMILIES[name].label} cannot be fitted in a stream: {ROWS_AT_HAND[name]}")
    source = table_source(data, target, FileProgress(progress))
    encoding = source.labelled().encoding
    encoder = encoding.encoder if FAMILIES[name].encoded else None
    model = _model(encoding.schema, encoder, name, parameters, loss)
    rows = TrainingRows(source)
    if name == "baseline":
        return model, lambda: fit_shares(model.estimator, rows.count())
    return model, lambda: model.estimator.fit(rows)


def _model(
    schema: TableSchema, encoder: TableEncoder | None, name: str, parameters: dict[str, Any], loss: Path | None
) -> TableModel:
    costs, actions = (None, None) if loss is None else read_loss(loss, schema.classes)
    estimator = build(name, **_by_code(parameters, schema.classes))
    return TableModel(schema, encoder, estimator, family=name, loss=costs, actions=actions)


def _parameters(settings: list[str]) -> dict[str, Any]:
    """key=value pairs; a value is JSON where it can be, else text."""
    parameters: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not (key and equals):
            raise ValueError(f"--set {setting} is not of the form key=value.")
        if key in parameters:
            raise ValueError(f"--set gives {key} twice; give it once.")
        try:
            parameters[key] = json.loads(value)
        except ValueError:
            parameters[key] = value
    return parameters


def _by_code(parameters: dict[str, Any], classes: tuple[Any, ...]) -> dict[str, Any]:
    """Weights of classes by number, as the estimators have them; they are typed by label."""
    weights = parameters.get("class_weight")
    if not isinstance(weights, dict):
        return parameters
    codes = {str(label): code for code, label in enumerate(classes)}
    if unknown := next((label for label in weights if label not in codes), None):
        raise ValueError(f"class_weight names {unknown!r}, which is not a class; these are {joined(list(codes))}.")
    return {**parameters, "class_weight": {codes[label]: weight for label, weight in weights.items()}}
