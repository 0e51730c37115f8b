"""A Parquet set larger than what a fit may hold: the array's numbers in a fraction of its memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from separatrix import LinearDiscriminantAnalysis

CHILD = """
import json, sys
import pyarrow.parquet
import separatrix

def kilobytes(key):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(key))

small, large = (separatrix.scan_parquet(path, target="label") for path in sys.argv[1:])
separatrix.LinearDiscriminantAnalysis().fit(small)  # what follows is of the rows: modules, threads and their pools are there
before = kilobytes("VmRSS")
model = separatrix.LinearDiscriminantAnalysis().fit(large)
peak = kilobytes("VmHWM") - before
print(json.dumps({"peak": 1024 * peak, "coef": model.coef_.tolist(), "passes": model.fit_.passes}))
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc, which is not here")
def test_lda_from_parquet_in_less_than_a_quarter_of_the_decoded_size(tmp_path):
    n, d, parts = 3_200_000, 20, 4
    rng = np.random.default_rng(0)
    pieces = []
    for part in range(parts):  # dictionary pages and one row group a file, as the usual writers leave them
        codes = rng.integers(0, 3, n // parts)
        X = rng.standard_normal((n // parts, d)) + 0.1 * codes[:, None]
        columns = {f"x{j}": X[:, j] for j in range(d)} | {"label": np.array(["a", "b", "c"])[codes]}
        pq.write_table(pa.table(columns), tmp_path / f"{part}.parquet")
        pieces.append((X, columns["label"]))
    pq.write_table(pa.table(columns)[:1000], tmp_path / "few.parquet")
    paths = [str(tmp_path / "few.parquet"), str(tmp_path / "[0-9].parquet")]
    out = subprocess.run([sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=True)
    result = json.loads(out.stdout)
    assert result["passes"] == 2  # one for the labels, one for the rows
    assert result["peak"] < n * d * 8 / 4
    X, y = np.concatenate([piece[0] for piece in pieces]), np.concatenate([piece[1] for piece in pieces])
    np.testing.assert_allclose(result["coef"], LinearDiscriminantAnalysis().fit(X, y).coef_, rtol=1e-9, atol=1e-12)
