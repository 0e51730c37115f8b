"""`separatrix fit`: one family, with the parameters given, on all rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from separatrix.comparison.costs import read_loss
from separatrix.comparison.families import FAMILIES, build
from separatrix.comparison.fitting import by_name, fit_sentence, in_words
from separatrix.comparison.table_model import TableModel
from separatrix.data.writing import destination
from separatrix.export.model_file import save_model
from separatrix.result import Status
from separatrix.tables.encoder import TableEncoder
from separatrix.tables.findings import joined
from separatrix.tables.reading import read_table
from separatrix.tables.schema import TableSchema


def run(data: Path, target: str, name: str, settings: list[str], loss: Path | None, output: Path) -> None:
    """Fit a model to a table and save it."""
    parameters = _parameters(settings)
    destination(output)  # before the work
    build(name, **parameters)  # a wrong name is refused before the table is read
    schema, rows, codes = TableSchema.infer_and_read(read_table(data), target)
    costs, actions = (None, None) if loss is None else read_loss(loss, schema.classes)
    estimator = build(name, **_by_code(parameters, schema.classes))
    encoder = TableEncoder(schema).fit(rows) if FAMILIES[name].encoded else None
    model = TableModel(schema, encoder, estimator, family=name, loss=costs, actions=actions)
    try:
        estimator.fit(model.encode(rows), codes)
    except ValueError as error:  # the estimator has the classes by number
        raise ValueError(in_words(error, np.asarray(schema.classes))) from error
    save_model(model, output)
    fit = getattr(model.estimator, "fit_", None)
    print(f"Fitted {FAMILIES[name].label}." if fit is None else by_name(fit_sentence(fit), model.classes_))
    if fit is not None and fit.certificate is not None and fit.status not in (Status.SEPARATES, Status.MISTAKES_LEFT):
        print(f"Certificate: {fit.certificate}")
    for finding in model.schema.findings:
        print(f"- {finding}")
    print(f"Wrote {output}.")


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
