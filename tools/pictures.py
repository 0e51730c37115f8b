"""Make the pictures that pages keep: report.png and boundary.png of README.md, ordered.png, all in docs/images.

python tools/pictures.py          needs Chromium, playwright and pillow
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # after the backend
import numpy as np
import pandas as pd
from PIL import Image
from playwright.sync_api import sync_playwright

from separatrix import (
    SVC,
    LinearDiscriminantAnalysis,
    LogisticRegression,
    OrderedLogisticRegression,
    QuadraticDiscriminantAnalysis,
)
from separatrix.plots import DecisionBoundaryDisplay

ROOT = Path(__file__).resolve().parents[1]
IMAGES, TABLE = ROOT / "docs" / "images", ROOT / "examples" / "data" / "penguins.csv"
COMMAND = Path(sys.executable).with_name("separatrix")


def keep(picture: Image.Image, name: str) -> None:
    """A picture of 128 colours: text and flat areas need no more."""
    picture.convert("RGB").quantize(128, dither=Image.Dither.NONE).save(IMAGES / name, optimize=True)


def report() -> None:
    """The report of `separatrix compare`: what is right and wrong, and what follows it."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as play:
        command = [COMMAND, "compare", TABLE, "--target", "sex", "--out", folder, "--quiet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1120, "height": 1000}, device_scale_factor=1.5)
        page.goto(f"file://{folder}/report.html")
        top = page.locator("h2", has_text="Right and wrong").first.bounding_box()
        assert top is not None, "the report has a heading"
        part = {"x": 70, "y": top["y"] - 16, "width": 980, "height": 760}
        picture = Image.open(io.BytesIO(page.screenshot(full_page=True, clip=part)))
        browser.close()
    keep(picture.resize((940, 700), Image.Resampling.LANCZOS), "report.png")


def boundary() -> None:
    """Four families on the same two columns."""
    table = pd.read_csv(TABLE).dropna()
    X, y = table[["bill_length_mm", "bill_depth_mm"]], table["species"]
    models = {
        "Linear discriminant analysis": LinearDiscriminantAnalysis(),
        "Quadratic discriminant analysis": QuadraticDiscriminantAnalysis(),
        "Logistic regression": LogisticRegression(C=1.0),
        "Support vector machine": SVC(kernel="rbf"),
    }
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.6), layout="constrained", sharex=True, sharey=True)
    for ax, (title, model) in zip(axes.flat, models.items(), strict=True):
        DecisionBoundaryDisplay.from_estimator(model.fit(X, y), X, y, ax=ax)
        ax.set_title(title, fontsize=11)
        ax.set(xlabel="bill length, mm", ylabel="bill depth, mm")
        ax.label_outer()
        found, legend = ax.get_legend_handles_labels(), ax.get_legend()
        if legend is not None:
            legend.remove()
    figure.legend(*found, loc="outside lower center", ncols=4, frameon=False)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100, facecolor="white")
    keep(Image.open(drawn), "boundary.png")


def ordered() -> None:
    """The data of docs/ordered.md: what the score makes of three ordered classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    grade = np.digitize(X @ [1.0, -0.5] + rng.logistic(size=400), [-1, 1])
    model = OrderedLogisticRegression(C=np.inf).fit(X, grade)
    score = np.linspace(-6.0, 6.0, 200)
    proba = model.predict_proba(score[:, None] * model.coef_ / (model.coef_ @ model.coef_))
    figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
    for label, style, column in zip(["low", "mid", "high"], ["-", "--", "-."], proba.T, strict=True):
        ax.plot(score, column, style, label=label)
    for threshold in model.thresholds_:
        ax.axvline(threshold, color="grey", linestyle=":")
    ax.set(xlabel="score wᵀx; dotted: the thresholds", ylabel="probability", ylim=(0, 1))
    ax.legend(frameon=False)
    drawn = io.BytesIO()
    figure.savefig(drawn, dpi=100, facecolor="white")
    keep(Image.open(drawn), "ordered.png")


if __name__ == "__main__":
    report()
    boundary()
    ordered()
