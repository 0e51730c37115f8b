"""The gallery's scripts, which are scikit-learn's and not ours: from the source distribution of the installed version.

It is fetched once from the index that pip uses, checked by the hash given there, and its examples are kept under build/.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib import import_module, metadata
from pathlib import Path
from urllib.request import urlopen

from benchmarks.children import ROOT

CACHE = ROOT / "build" / "gallery"
_PIP = "pip._internal.models.index"  # pip has no public word for it
_SECONDS = 120  # without an answer

# Twelve of those that use our classes, on data that are generated or bundled, say no times, and end within some seconds.
SCRIPTS = (
    "classification/plot_classification_probability.py",
    "classification/plot_digits_classification.py",
    "classification/plot_lda_qda.py",
    "decomposition/plot_pca_vs_lda.py",
    "linear_model/plot_logistic_multinomial.py",
    "linear_model/plot_logistic_path.py",
    "linear_model/plot_ridge_path.py",
    "model_selection/plot_confusion_matrix.py",
    "model_selection/plot_nested_cross_validation_iris.py",
    "model_selection/plot_precision_recall.py",
    "svm/plot_iris_svc.py",
    "svm/plot_svm_margin.py",
)


def fetch(cache: str = str(CACHE)) -> str:
    """The folder of the examples, fetched if it is not there."""
    name = f"scikit_learn-{metadata.version('scikit-learn')}"
    kept = Path(cache) / name / "examples"
    if not kept.is_dir():
        kept.parent.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as folder:
            unpack(_download(f"{name}.tar.gz"), Path(folder))
            shutil.move(Path(folder) / name, kept.parent)
    return str(kept)


def unpack(archive: bytes, folder: Path) -> None:
    """The examples of a source distribution, into a folder."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        examples = [member for member in files if re.match(r"[^/]+/examples/", member.name)]
        files.extractall(folder, members=examples, filter="data")


def address_of(file: str, index: str) -> tuple[str, str]:
    """Where a page of the index says that a file is, and its hash."""
    found = re.search(rf'href="([^"#]*/{re.escape(file)})#sha256=([0-9a-f]{{64}})"', index)
    if found is None:
        raise LookupError(f"the package index has no {file}")
    return found[1], found[2]


def _index() -> str:
    """The address of the index: what pip was told, or what it takes by itself."""
    told = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    )
    return os.environ.get("PIP_INDEX_URL") or told.stdout.strip() or str(import_module(_PIP).PyPI.simple_url)


def _download(file: str) -> bytes:
    with urlopen(f"{_index().rstrip('/')}/scikit-learn/", timeout=_SECONDS) as answer:
        address, expected = address_of(file, answer.read().decode())
    with urlopen(address, timeout=_SECONDS) as answer:
        archive: bytes = answer.read()
    if hashlib.sha256(archive).hexdigest() != expected:
        raise ValueError(f"{file} is not the file that the index has the hash of")
    return archive
