"""Compare the models of the library on a real data set, straight from its file.

Run with `make demo`. Ten-fold cross-validation; the log-loss decides, ± its standard error over the folds.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import PolynomialFeatures

from separatrix import (
    FeatureMap,
    FisherDiscriminant,
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
    RegularizedDiscriminantAnalysis,
    RidgeClassifier,
    scan_csv,
)

DATA = Path(__file__).parent / "data" / "wine.csv"
MODELS = {
    "LDA": LinearDiscriminantAnalysis(),
    "LDA, Ledoit–Wolf": LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "QDA": QuadraticDiscriminantAnalysis(),
    "RDA, exact leave-one-out": RegularizedDiscriminantAnalysis("loo", "loo", target="diagonal"),
    "naive Bayes (RDA corner)": RegularizedDiscriminantAnalysis(1.0, 0.0, target="diagonal"),
    "least squares": RidgeClassifier(alpha=1.0),
    "least squares, squares added": FeatureMap(
        PolynomialFeatures(2, interaction_only=False), RidgeClassifier(alpha=1.0)
    ),
}


def cross_validate(model: object, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Log-loss (NaN without probabilities) and error of every fold."""
    losses, errors = [], []
    for train, test in StratifiedKFold(10, shuffle=True, random_state=0).split(X, y):
        fitted = clone(model).fit(X[train], y[train])
        errors.append(np.mean(fitted.predict(X[test]) != y[test]))
        proba = fitted.predict_proba(X[test]) if hasattr(fitted, "predict_proba") else None
        losses.append(np.nan if proba is None else log_loss(y[test], proba, labels=fitted.classes_))
    return np.array(losses), np.array(errors)


def plus_minus(values: np.ndarray) -> str:
    """Mean ± standard error."""
    return "—" if np.isnan(values).any() else f"{values.mean():.4f} ± {values.std(ddof=1) / np.sqrt(len(values)):.4f}"


def main() -> None:
    """Print the ranked table and what the best fit says about itself."""
    console = Console(width=118)
    source = scan_csv(DATA, target="cultivar")
    blocks = list(source.labelled().blocks())
    X, y = np.concatenate([block.dense() for block in blocks]), np.concatenate([block.y for block in blocks])
    y = source.labelled().classes[y]
    console.print(f"[bold]{DATA.name}[/bold]: {len(y)} rows, {X.shape[1]} features, classes {np.unique(y).tolist()}\n")
    results = {}
    for name, model in MODELS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            losses, errors = cross_validate(model, X, y)
        results[name] = (losses, errors, clone(model).fit(X, y))
    ranked = sorted(
        results, key=lambda name: (np.nan_to_num(results[name][0].mean(), nan=np.inf), results[name][1].mean())
    )
    table = Table(title="Ten-fold cross-validation, best first")
    for column in ("model", "log-loss", "error rate", "fit (ms)", "passes", "the fit says"):
        table.add_column(column)
    for name in ranked:
        losses, errors, fitted = results[name]
        fit = fitted.fit_
        says = str(fit.status).split(";")[0].split(",")[0]
        table.add_row(name, plus_minus(losses), plus_minus(errors), f"{1e3 * fit.seconds:.1f}", str(fit.passes), says)
    console.print(table)
    from_file = LinearDiscriminantAnalysis().fit(source)
    in_memory = LinearDiscriminantAnalysis().fit(X, y)
    console.print(
        f"LDA fitted from the file, block by block, equals LDA fitted from the array: "
        f"largest difference {np.abs(from_file.coef_ - in_memory.coef_).max():.1e}."
    )
    fisher = FisherDiscriminant().fit(X, y)
    shares = ", ".join(f"{share:.1%}" for share in fisher.explained_variance_ratio_)
    console.print(f"Fisher's discriminant coordinates carry {shares} of the between-class variance.")
    console.print(f"\n[bold]{ranked[0]}[/bold]\n{results[ranked[0]][2].fit_}")


if __name__ == "__main__":
    main()
