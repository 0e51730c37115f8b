"""Files that are damaged, gone, empty or different: a sentence with the file's name, or the same answer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from test_table_source import people

import separatrix as sx
from separatrix.tables import table_files

MIXED, NUMBERS = ["age", "city", "insured", "ill"], ["children", "height", "ill"]


def write(frame, path):
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path, index=False)


@pytest.fixture(params=list(itertools.product([".parquet", ".csv"], [MIXED, NUMBERS])), ids=str)
def parts(request, tmp_path, monkeypatch):
    """Three files of a table, and how they are scanned."""
    monkeypatch.setattr(table_files, "ROWS", 100)
    suffix, columns = request.param
    frame = people(900)[columns].dropna(subset="ill")
    paths = [tmp_path / f"{name}{suffix}" for name in "abc"]
    for path, rows in zip(paths, np.array_split(np.arange(len(frame)), 3), strict=True):
        write(frame.iloc[rows], path)
    scan = sx.scan_csv if suffix == ".csv" else sx.scan_parquet
    return paths, frame, lambda: scan(paths, target="ill")


def test_a_damaged_file_in_the_middle_is_named(parts):
    paths, _, scan = parts
    content = paths[1].read_bytes()
    half = len(content) // 2
    if paths[1].suffix == ".csv":
        paths[1].write_bytes(content[:half] + b'\n1,2,3,4,5,6,7,8\n"' + content[half:])
    else:
        paths[1].write_bytes(content[: half // 2] + b"\0" * half + content[half // 2 + half :])
    with pytest.raises((ValueError, OSError), match=r"b\.(csv|parquet)"):
        sx.LogisticRegression().fit(scan())


def test_damage_that_can_be_unpacked_shows_in_the_checksum(tmp_path):
    """Numbers that were overwritten are numbers still; a file with checksums of its pages tells."""
    frame = people(2_000)[NUMBERS].dropna(subset="ill")
    for name in "abc":
        plain = {"compression": "none", "use_dictionary": False, "write_page_checksum": True}
        frame.to_parquet(tmp_path / f"{name}.parquet", **plain)
    content = (tmp_path / "b.parquet").read_bytes()
    at = content.index(frame["children"].to_numpy()[500:600].tobytes())
    (tmp_path / "b.parquet").write_bytes(content[:at] + bytes(160) + content[at + 160 :])
    with pytest.raises((ValueError, OSError), match=r"b\.parquet") as said:
        sx.LogisticRegression().fit(sx.scan_parquet(tmp_path, target="ill"))
    assert str(said.value).count("b.parquet") == 1


@pytest.mark.parametrize("what", ["gone", "changed"])
def test_a_file_that_disappears_between_passes_is_named(parts, what, tmp_path):
    paths, _, scan = parts
    source = scan()
    sx.LinearDiscriminantAnalysis().fit(source)
    content = paths[1].read_bytes()
    paths[1].unlink() if what == "gone" else paths[1].write_bytes(content + b"\n")
    with pytest.raises((ValueError, OSError), match=r"b\.(csv|parquet).*(changed|moved)"):
        sx.LogisticRegression().fit(source)


def test_a_checkpoint_outlives_a_file_that_was_gone_for_a_while(parts, tmp_path, monkeypatch):
    paths, _, scan = parts
    whole = sx.LogisticRegression(tol=1e-10).fit(scan())
    source, hidden = scan(), paths[1].with_name("hidden")
    reads = []
    from separatrix.data.journal import Journal

    result = Journal.result

    def vanish(self, key, read, count_pass):
        reads.append(key)
        if len(reads) == 3:
            paths[1].rename(hidden)
        return result(self, key, read, count_pass)

    monkeypatch.setattr(Journal, "result", vanish)
    with pytest.raises((ValueError, OSError), match=r"b\.(csv|parquet)"):
        sx.LogisticRegression(tol=1e-10).fit(source, checkpoint=tmp_path / "checkpoint")
    hidden.rename(paths[1])
    resumed = sx.LogisticRegression(tol=1e-10).fit(scan(), checkpoint=tmp_path / "checkpoint")
    np.testing.assert_array_equal(resumed.coef_, whole.coef_)


@pytest.mark.parametrize("first", [True, False])
def test_empty_files_change_nothing(parts, first):
    paths, frame, scan = parts
    whole = sx.LinearDiscriminantAnalysis().fit(scan())
    empty = paths[0].with_name(f"{'0' if first else 'bb'}{paths[0].suffix}")
    if empty.suffix == ".csv":
        write(frame[:0], empty)
    else:
        import pyarrow.parquet as pq

        pq.write_table(pq.read_table(paths[0])[:0], empty)
    given = [empty, *paths] if first else [paths[0], empty, *paths[1:]]
    scan = sx.scan_csv if empty.suffix == ".csv" else sx.scan_parquet
    np.testing.assert_allclose(
        sx.LinearDiscriminantAnalysis().fit(scan(given, target="ill")).coef_, whole.coef_, rtol=1e-9
    )


def test_no_rows_at_all_is_a_sentence(parts):
    paths, frame, scan = parts
    for path in paths:
        write(frame[:0], path)
    with pytest.raises(ValueError, match=r"no rows|no row "):
        sx.LogisticRegression().fit(scan())


def test_a_column_that_changes_its_type_is_named_with_the_file(parts):
    paths, frame, scan = parts
    name = frame.columns[0]
    changed = frame[600:].assign(**{name: "word"})
    write(changed, paths[2])
    if paths[2].suffix == ".csv" and "city" in frame:
        pytest.skip("text is what a column of a text file is: the table is read as one")
    with pytest.raises(ValueError, match=rf"c\.(csv|parquet).*column '{name}'"):
        sx.LogisticRegression().fit(scan())


def test_a_column_that_is_missing_in_a_later_file_is_named(parts):
    paths, frame, scan = parts
    write(frame[600:].drop(columns=frame.columns[0]), paths[2])
    with pytest.raises(ValueError, match=rf"c\.(csv|parquet).*{frame.columns[0]}"):
        sx.LogisticRegression().fit(scan())
