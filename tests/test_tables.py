"""Tables from messy files, and what their columns are taken to be: the same however a table is stored, cut or ordered."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from separatrix.data.arrow_columns import MISSING, NO_LABEL
from separatrix.tables.reading import read_table, table_batches
from separatrix.tables.schema import ColumnSchema, TableSchema


def write(folder, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def same_rows(a, b) -> None:
    assert list(a.columns) == list(b.columns)
    assert len(a) == len(b)
    assert a.booleans == b.booleans
    for name, values in a.columns.items():
        assert values.dtype == b.columns[name].dtype
        np.testing.assert_array_equal(values, b.columns[name], err_msg=name)


def kinds(schema: TableSchema) -> dict[str, str]:
    return {column.name: column.kind for column in schema.columns}


def column(schema: TableSchema, name: str) -> ColumnSchema:
    return next(column for column in schema.columns if column.name == name)


@pytest.fixture
def people() -> pd.DataFrame:
    """A clean table with a column of every kind, and holes."""
    rng = np.random.default_rng(0)
    n = 60
    return pd.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(20, 80, n)),
            "height": rng.normal(1.7, 0.1, n).round(3),
            "children": rng.integers(0, 4, n),
            "city": rng.choice(["Oslo", "Rome", None], n, p=[0.5, 0.4, 0.1]),
            "smoker": rng.choice(["yes", "no"], n),
            "insured": rng.choice([True, False], n),
            "ill": rng.choice(["never", "often"], n),
        }
    )


# -- reading files ----------------------------------------------------------------------------------------------------


MESSY = {
    "comma.csv": "a,b\n1,x\n2,y\n",
    "bom.csv": b"\xef\xbb\xbfa,b\n1,x\n2,y\n",
    "crlf.csv": "a,b\r\n1,x\r\n2,y\r\n",
    "old_mac.csv": "a,b\r1,x\r2,y\r",
    "semicolon.csv": "a;b\n1;x\n2;y",
    "tab.tsv": "a\tb\n1\tx\n2\ty\n",
    "pipe.txt": "a|b\n1|x\n2|y\n",
    "quoted.csv": '"a","b"\n"1","x"\n2,y\n',
    "trailing.csv": "a,b,\n1,x,\n2,y,\n",
    "blank_lines.csv": "\na,b\n\n1,x\n\n2,y\n\n",
    "spaced_names.csv": "a , b\n1,x\n2,y\n",
    "utf16.csv": "a\tb\n1\tx\n2\ty\n".encode("utf-16"),
    "packed.csv.gz": gzip.compress(b"a,b\n1,x\n2,y\n", mtime=0),
    "CAPITALS.CSV": "a,b\n1,x\n2,y\n",
    "excel.csv": "sep=;\r\na;b\r\n1;x\r\n2;y\r\n",
    "excel_bom.csv": b'\xef\xbb\xbf"sep=|"\na|b\n1|x\n2|y\n',
    "spaced_quotes.csv": 'a, "b"\n1, "x"\n2,  "y"\n',
    "spaced_quotes.csv.gz": gzip.compress(b'a, "b"\n1, "x"\n2, "y"\n', mtime=0),
}


@pytest.mark.parametrize("name", MESSY)
def test_text_files_of_every_make_give_the_same_table(tmp_path, name):
    table = read_table(write(tmp_path, name, MESSY[name]))
    assert table.to_pydict() == {"a": ["1", "2"], "b": ["x", "y"]}
    assert table.schema.types == [pa.string(), pa.string()]


def test_quotes_hold_delimiters_newlines_and_quotes(tmp_path):
    path = write(tmp_path, "q.csv", 'a,b\n"x, ""y""\r\nz",1\n5" pipe;2;3,2\n')
    assert read_table(path).to_pydict() == {"a": ['x, "y"\r\nz', '5" pipe;2;3'], "b": ["1", "2"]}


def test_blanks_before_a_quotation_mark_are_dropped_wherever_a_file_is_cut(tmp_path):
    lines = [f'{i},  "text, {i}", 5' for i in range(40_000)]  # several parts of the file
    table = read_table(write(tmp_path, "t.csv", "a,b,c\n" + "\n".join(lines)))
    assert table.column("b").to_pylist() == [f"text, {i}" for i in range(40_000)]
    assert table.column("c").to_pylist() == [" 5"] * 40_000


def test_a_last_field_of_several_lines_is_whole(tmp_path):
    text = 'a,b\n1,"two\n""lines""\n"\n'
    for name, data in (("t.csv", text), ("t.csv.gz", gzip.compress(text.encode())), ("u.csv", text.rstrip())):
        assert read_table(write(tmp_path, name, data)).to_pydict() == {"a": ["1"], "b": ['two\n"lines"\n']}
    spaced = read_table(write(tmp_path, "t.csv", 'a,b\n1,"two\nlines" \n'))
    assert spaced.column("b").to_pylist() == ["two\nlines "]


@pytest.mark.parametrize(
    ("text", "delimiter"),
    [
        ('name;x\n"a,b";1,5\n"c,d";2,5\n', ";"),  # as many commas as semicolons, but not in the header
        ("a, b and c\td\n1\t2\n", "\t"),  # a comma in a name
        ('"a,b,c,d";x\n1;2\n', ";"),  # commas inside quotes
        ("a|b;c|d\n1|2|3\n4|5|6\n", "|"),
        ("only\n1\n2\n", ","),
        ("a,1;b\n1,5;2\n2,5;3\n", ";"),  # a tie: commas stand in names and numbers too
        ("sep=;\na,b,c;d\n1,2,3;4\n", ";"),
    ],
)
def test_the_delimiter_is_the_one_that_cuts_every_line_alike(tmp_path, text, delimiter):
    assert read_table(write(tmp_path, "t.csv", text)).schema.metadata[b"separatrix.delimiter"] == delimiter.encode()


def test_only_an_empty_field_is_null_and_codes_stay_as_they_are(tmp_path):
    path = write(tmp_path, "t.csv", 'a,b\nNA,""\n,null\n007,1e5\n')
    assert read_table(path).to_pydict() == {"a": ["NA", None, "007"], "b": [None, "null", "1e5"]}


def test_a_column_without_a_name_is_called_by_its_place(tmp_path):
    frame = pd.DataFrame({"a": [5, 6]})
    frame.to_csv(tmp_path / "t.csv")  # pandas writes its index first
    assert read_table(tmp_path / "t.csv").to_pydict() == {"column 1": ["0", "1"], "a": ["5", "6"]}


def test_a_header_longer_than_what_is_sniffed(tmp_path):
    names = [f"measurement number {j}" for j in range(20_000)]
    path = write(tmp_path, "wide.csv", ";".join(names) + "\n" + ";".join(["1,5"] * 20_000) + "\n")
    table = read_table(path)
    assert table.column_names == names
    assert table.schema.types == [pa.string()] * 20_000


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("t.csv", "a,b\n1,2\n1,2,3\n", ["line 3", "3 fields", "header has 2"]),
        ("t.csv", 'a,b\n"x\ny",2\n1\n', ["line 4", "1 field ", "header has 2"]),
        ("t.csv", 'a,b\n1,2\n"3,4\n5,6\n', ["line 3", "quotation mark left open"]),
        ("t.csv", 'a,b\n1,"2\n' + "3,4\n" * 500_000, ["quotation mark left open"]),
        ("t.csv", 'a,b\n1,"2\n3,4\n', ["quotation mark left open"]),
        ("t.csv", 'a,b\n1,"2\n3,4', ["quotation mark left open"]),
        ("t.csv", '"a,b\n' + "1,2\n" * 99_999, ["line 1", "quotation mark left open"]),
        ("t.csv", "a,b,a\n1,2,3\n", ["2 columns named 'a'", "rename"]),
        ("t.csv", "a,b,\n1,2,\n3,4,5\n", ["last column has no name", "row 2"]),
        ("t.csv", "sep=;\na;b\n1;2\n1;2;3\n", ["line 4", "3 fields", "header has 2"]),
        ("t.csv", "sep=;\n", ["empty", "header"]),
        ("t.csv", "", ["empty", "header"]),
        ("t.csv", "\n\n", ["empty", "header"]),
        ("t.csv", "a,b\n", ["no rows"]),
        ("t.csv", "a,b", ["no rows"]),
        ("t.csv", "a,b\n1,2\ncaf\u00e9,3\n".encode("cp1252"), ["line 3", "not UTF-8", "iconv"]),
        ("t.csv", "caf\u00e9,b\n1,2\n".encode("cp1252"), ["line 1", "not UTF-8"]),
        ("t.csv", b"PK\x03\x04\x00\x00", ["binary", "CSV"]),
        ("t.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * 999, mtime=0)[:-9], ["complete"]),
        ("t.xlsx", "a,b\n1,2\n", ["'.xlsx'", ".csv"]),
        ("t", "a,b\n1,2\n", ["without a suffix", ".parquet"]),
        ("t.parquet", "a,b\n1,2\n", ["t.parquet", "type its name says"]),
        ("t.arrow", "a,b\n1,2\n", ["t.arrow", "type its name says"]),
    ],
)
def test_bad_files_are_refused_with_the_place(tmp_path, name, text, words):
    path = write(tmp_path, name, text)
    with pytest.raises(ValueError) as caught:
        read_table(path)
    for word in [*words, name]:
        assert word in str(caught.value)


def test_missing_files_folders_and_bad_sizes(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file .*nothing\.csv"):
        table_batches(tmp_path / "nothing.csv")  # at once, not at the first batch
    with pytest.raises(ValueError, match="is a folder"):
        table_batches(tmp_path)
    with pytest.raises(ValueError, match="at least one row"):
        table_batches(write(tmp_path, "t.csv", "a\n1\n"), rows=0)


def test_a_table_without_rows_is_refused_in_every_format(tmp_path):
    empty = pa.table({"a": pa.array([], pa.int64())})
    pa.parquet.write_table(empty, tmp_path / "t.parquet")
    pa.feather.write_feather(empty, str(tmp_path / "t.feather"))
    for name in ("t.parquet", "t.feather"):
        with pytest.raises(ValueError, match="no rows"):
            read_table(tmp_path / name)


def test_parquet_and_arrow_keep_their_types(tmp_path, people):
    table = pa.Table.from_pandas(people, preserve_index=False).replace_schema_metadata(None)
    pa.parquet.write_table(table, tmp_path / "t.parquet", row_group_size=7)
    pa.feather.write_feather(table, str(tmp_path / "t.feather"))
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    with pa.OSFile(str(tmp_path / "t.ipc"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    for name in ("t.parquet", "t.feather", "t.arrow", "t.ipc"):
        assert read_table(tmp_path / name).equals(table), name


def test_the_index_that_pandas_stores_is_no_column(tmp_path, people):
    people.set_index(people.index * 2 + 5).to_parquet(tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet").column_names == list(people.columns)


FIELD = st.text(st.sampled_from('abé ,;|\t"\n19.'), max_size=6)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(st.lists(FIELD, min_size=3, max_size=3), min_size=1, max_size=12),
    delimiter=st.sampled_from(",;\t|"),
    newline=st.sampled_from(["\n", "\r\n"]),
    rows=st.integers(1, 15),
)
def test_whatever_is_written_with_quotes_is_read_back_in_any_batches(tmp_path, cells, delimiter, newline, rows):
    # The reference writes every field in quotes, as the CSV standard (RFC 4180) has it.
    lines = [delimiter.join('"' + cell.replace('"', '""') + '"' for cell in line) for line in [["x", "y", "z"], *cells]]
    path = write(tmp_path, "t.csv", newline.join(lines) + newline)
    whole = read_table(path)
    assert whole.to_pydict() == {name: [line[j] or None for line in cells] for j, name in enumerate("xyz")}
    batches = list(table_batches(path, rows))
    assert all(0 < batch.num_rows <= rows for batch in batches)
    assert pa.Table.from_batches(batches).equals(whole)


def test_batches_of_a_file_of_many_blocks_are_the_whole_file(tmp_path):
    frame = pd.DataFrame({"n": np.arange(200_000), "s": "some text, in quotes\nover two lines"})
    frame.to_csv(tmp_path / "t.csv", index=False)  # 8 MB: several blocks
    whole = read_table(tmp_path / "t.csv")
    assert whole.column("n").to_pylist() == [str(n) for n in range(200_000)]
    assert len(set(whole.column("s").to_pylist())) == 1
    assert sum(batch.num_rows for batch in table_batches(tmp_path / "t.csv", 777)) == 200_000


# -- what the columns are ---------------------------------------------------------------------------------------------


def test_the_same_table_in_any_form_gives_the_same_schema_and_rows(tmp_path, people):
    people.to_csv(tmp_path / "t.csv", index=False)
    people.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",", na_rep="NA")
    people.to_parquet(tmp_path / "t.parquet")
    people.astype({"city": "category"}).to_parquet(tmp_path / "categories.parquet")
    forms = {
        "pandas": people,
        "nullable pandas": people.convert_dtypes(),
        "pandas categories": people.astype({"city": "category", "smoker": "category", "ill": "category"}),
        "polars": pl.from_pandas(people),
        "polars categories": pl.from_pandas(people).with_columns(pl.col("city").cast(pl.Categorical)),
        "pyarrow": pa.Table.from_pandas(people),
        "csv": read_table(tmp_path / "t.csv"),
        "csv with decimal commas": read_table(tmp_path / "comma.csv"),
        "parquet": read_table(tmp_path / "t.parquet"),
        "parquet with categories": read_table(tmp_path / "categories.parquet"),
    }
    schemas = {name: TableSchema.infer(form, "ill") for name, form in forms.items()}
    expected = schemas["pandas"].read(people)
    codes, known = schemas["pandas"].read_target(people)
    assert kinds(schemas["pandas"]) == {
        "age": "numeric",
        "height": "numeric",
        "children": "numeric",
        "city": "categorical",
        "smoker": "boolean",
        "insured": "boolean",
    }
    np.testing.assert_array_equal(codes, people["ill"] == "often")
    assert known.all()
    np.testing.assert_array_equal(expected.columns["age"], people["age"])
    assert expected.columns["city"].tolist() == [None if isinstance(c, float) else c for c in people["city"]]
    np.testing.assert_array_equal(expected.columns["smoker"], people["smoker"] == "yes")
    for name, form in forms.items():
        schema = schemas[name]
        assert kinds(schema) == kinds(schemas["pandas"]), name
        assert schema.classes == ("never", "often")
        assert [c.missing for c in schema.columns] == [c.missing for c in schemas["pandas"].columns]
        assert schema.decimal == ("," if name == "csv with decimal commas" else ".")
        same_rows(schema.read(form), expected)
        np.testing.assert_array_equal(schema.read_target(form)[0], codes)
        if name != "csv with decimal commas":  # a schema reads every form of the table, not only its own
            same_rows(schemas["pandas"].read(form), expected)


def test_rows_of_batches_are_the_rows_of_the_table(tmp_path, people):
    people.to_csv(tmp_path / "t.csv", index=False)
    schema = TableSchema.infer(read_table(tmp_path / "t.csv"), "ill")
    whole = schema.read(read_table(tmp_path / "t.csv"))
    for rows in (1, 7, 60, 1000):
        parts = [schema.read(batch) for batch in table_batches(tmp_path / "t.csv", rows)]
        start = 0
        for part in parts:
            same_rows(part, whole.take(np.arange(start, start + len(part))))
            start += len(part)
        assert start == len(whole)


def test_the_order_of_the_columns_does_not_matter_and_others_are_ignored(people):
    schema = TableSchema.infer(people, "ill")
    turned = people[people.columns[::-1]].assign(new="anything")
    same_rows(schema.read(turned), schema.read(people))


@pytest.mark.parametrize("code", MISSING)
def test_missing_codes(code):
    text = [code, "1", f" {code} ", "2.5"]
    table = pa.table(
        {"x": text, "c": ["u", code, "v", "u"], "f": ["yes", "no", code, "no"], "y": ["a", "b", code, "a"]}
    )
    schema = TableSchema.infer(table, "y")
    assert kinds(schema) == {"x": "numeric", "c": "categorical", "f": "boolean"}
    assert [c.missing for c in schema.columns] == [2, 1, 1]
    rows = schema.read(table)
    np.testing.assert_array_equal(rows.columns["x"], [np.nan, 1, np.nan, 2.5])
    assert rows.columns["c"].tolist() == ["u", None, "v", "u"]
    np.testing.assert_array_equal(rows.columns["f"], [1, 0, np.nan, 0])
    codes, known = schema.read_target(table)
    assert known.tolist() == [True, True, code not in NO_LABEL, True]
    if code in NO_LABEL:
        assert codes.tolist() == [0, 1, -1, 0]
        named = f" ({code!r} in 1 row)" if code else ""
        assert f"1 of 4 rows have no value in the target 'y'{named} and are not used." in schema.findings
    else:  # it may be the name of a class
        assert schema.classes[codes[2]] == code


def test_missing_codes_in_capitals_and_small_letters():
    assert {
        "n/a",
        "Null",
        "<NA>",
        "<na>",
        "N.A.",
        "n.a.",
        "k.A.",
        "K.A.",
        "#DIV/0!",
        "#VALUE!",
        "#REF!",
        "#NULL!",
        "--",
    } <= {*MISSING}
    assert "none" not in MISSING  # no garage is a kind of garage


@pytest.mark.parametrize("labels", [["+", "-"], ["None", "Mild", "Severe"], ["?", "!"], [".", ".."]])
def test_labels_that_mean_missing_elsewhere(labels):
    table = pa.table({"x": np.arange(30) ** 2, "y": [labels[i % len(labels)] for i in range(30)]})
    schema = TableSchema.infer(table, "y")
    assert set(schema.classes) == set(labels)
    assert schema.read_target(table)[1].all()


@pytest.mark.parametrize("pair", ["yes no", "Yes No", "TRUE FALSE", "y n", "T F", "true false"])
def test_flags(pair):
    one, zero = pair.split()
    schema = TableSchema.infer(pa.table({"f": [one, zero, zero, None], "y": [0, 1, 0, 1]}), "y")
    assert (column(schema, "f").kind, column(schema, "f").true) == ("boolean", one)
    assert set(column(schema, "f").categories) == {one, zero}
    later = schema.read(pa.table({"f": [one.upper(), zero.lower(), "1", "0", "", "true", "f"]})).columns["f"]
    np.testing.assert_array_equal(later, [1, 0, 1, 0, np.nan, 1, 0])
    np.testing.assert_array_equal(schema.read(pa.table({"f": [True, False, None]})).columns["f"], [1, 0, np.nan])
    np.testing.assert_array_equal(schema.read(pa.table({"f": [1, 0, None]})).columns["f"], [1, 0, np.nan])
    for strange in (["maybe", one], [2, 1]):  # as an unseen category, it does not stop a prediction
        np.testing.assert_array_equal(schema.read(pa.table({"f": strange})).columns["f"], [np.nan, 1])


def test_zeros_and_ones_are_numbers_and_so_are_codes():
    schema = TableSchema.infer(pa.table({"f": ["0", "1", "1"], "zip": [1001, 2002, 1001], "y": list("aab")}), "y")
    assert kinds(schema) == {"f": "numeric", "zip": "numeric"}


def test_numbers_in_text_as_people_write_them():
    texts = ["+1.5", "-2", " 3 ", "4.", ".5", "1e-3", "6E+2"]
    table = pa.table({"x": texts, "y": list("abababa")})
    np.testing.assert_array_equal(
        TableSchema.infer(table, "y").read(table).columns["x"], [float(text) for text in texts]
    )


def test_decimal_commas_need_another_delimiter(tmp_path):
    path = write(tmp_path, "t.csv", "x;k;y\n1,5;1;a\n2,25;2;b\n-3;3;a\n")
    schema = TableSchema.infer(read_table(path), "y")
    assert (schema.decimal, kinds(schema)) == (",", {"x": "numeric", "k": "numeric"})
    np.testing.assert_array_equal(schema.read(read_table(path)).columns["x"], [1.5, 2.25, -3])
    with pytest.raises(ValueError, match=r"column 'x', row 2 .*'2\.5' is not a number \(with a decimal comma\)"):
        schema.read(pa.table({"x": ["1,5", "2.5"], "k": ["1", "2"]}))
    quoted = read_table(write(tmp_path, "q.csv", 'x,k,y\n"1,5",1,a\n"2,25",2,b\n"1,5",4,a\n'))
    assert TableSchema.infer(quoted, "y").decimal == "."
    assert kinds(TableSchema.infer(quoted, "y"))["x"] == "categorical"


def test_a_table_has_one_decimal_mark_that_of_most_columns():
    table = pa.table({"a": ["1.5", "2.5"], "b": ["1.25", "7"], "c": ["1,5", "2,5"], "y": ["u", "v"]})
    schema = TableSchema.infer(table, "y")
    assert (schema.decimal, kinds(schema)) == (".", {"a": "numeric", "b": "numeric", "c": "categorical"})
    assert any("'c' is read as text" in finding and "'1,5'" in finding for finding in schema.findings)


def left_out(values) -> str:
    n = len(values)
    rng = np.random.default_rng(1)
    table = pa.table({"odd": values, "x": rng.normal(size=n), "y": np.arange(n) % 2})
    schema = TableSchema.infer(table, "y")
    assert column(schema, "odd").kind == "left_out"
    assert "odd" not in schema.read(table).columns
    assert any("'odd' is left out" in finding for finding in schema.findings)
    return column(schema, "odd").reason


def test_columns_that_are_left_out_and_why():
    n = 200
    assert "constant: always 'x'" in left_out(["x"] * n)
    assert "constant: always 3" in left_out([3.0] * n)
    assert "constant: always true" in left_out([True] * n)
    assert "no value" in left_out([None] * n)
    assert "no value" in left_out([float("nan")] * n)
    assert "no value" in left_out(["NA", ""] * (n // 2))
    assert "counts the rows, from 1 to 200" in left_out(list(range(1, n + 1)))
    assert "counts the rows" in left_out([str(i) for i in range(n)])
    assert "names the rows" in left_out([f"customer {i}" for i in range(n)])
    assert "names the rows" in left_out([f"customer {min(i, 195)}" for i in range(n)])
    assert "free text" in left_out([f"A long remark on number {min(i, 120)}" for i in range(n)])
    assert "dates" in left_out([f"2024-01-{1 + i % 28:02d}" for i in range(n)])
    assert "dates" in left_out([f"{1 + i % 28}.12.2024" for i in range(n)])
    assert "dates" in left_out([f"2024-01-{1 + i % 28:02d}T12:00:00Z" for i in range(n)])
    assert "dates" in left_out(pd.Series(pd.date_range("2024-01-01", periods=n)).dt.date.tolist())
    assert "type list" in left_out([[1, 2]] * n)
    assert "dates or times" in left_out([f"{i % 24}:{i % 60:02d}" for i in range(n)])
    assert "dates or times" in left_out([f"{1 + i % 12}:{i % 60:02d} pm" for i in range(n)])
    assert "dates or times" in left_out([f"Jan {1 + i % 28} 2023" for i in range(n)])
    assert "dates or times" in left_out([f"March {1 + i % 28}, 2023" for i in range(n)])
    assert "dates or times" in left_out([f"{1 + i % 28}. März 2023 12:30" for i in range(n)])
    assert "dates or times" in left_out([f"{1 + i % 28}-Oct-23" for i in range(n)])


def test_columns_that_look_odd_but_stay():
    n = 200
    rng = np.random.default_rng(2)
    stay = {
        "constant with holes": (["x", None] * (n // 2), "categorical"),
        "shuffled": (rng.permutation(n), "numeric"),
        "counting by two": (np.arange(0, 2 * n, 2), "numeric"),
        "towns": ([f"town {i % 45}" for i in range(n)], "categorical"),
        "numbers and a word": (["1", "2", "many", "4"] * (n // 4), "categorical"),
    }
    table = pa.table({name: values for name, (values, _) in stay.items()} | {"y": np.arange(n) % 2})
    assert kinds(TableSchema.infer(table, "y")) == {name: kind for name, (_, kind) in stay.items()}
    few = pa.table({"x": [1, 2, 3], "name": ["a", "b", "c"], "y": [0, 1, 0]})  # three rows prove nothing
    assert kinds(TableSchema.infer(few, "y")) == {"x": "numeric", "name": "categorical"}


def test_a_repeated_column_is_left_out():
    x, c = [1.0, None, 3.0], ["u", None, "v"]
    table = pa.table({"x": x, "c": c, "x2": x, "c2": c, "y": ["a", "b", "a"]})
    schema = TableSchema.infer(table, "y")
    assert kinds(schema) == {"x": "numeric", "c": "categorical", "x2": "left_out", "c2": "left_out"}
    assert "repeats column 'x'" in column(schema, "x2").reason
    assert schema.read(table.select(["x", "c"])).columns.keys() == {"x", "c"}  # it is not asked for again


def findings(table: dict) -> str:
    return "\n".join(TableSchema.infer(pa.table(table), "y").findings)


def test_findings_on_rows_and_classes():
    rng = np.random.default_rng(3)
    x = rng.normal(size=100)
    clean = {"x": x, "y": np.arange(100) % 2}
    assert findings(clean) == ""
    assert "3 rows repeat an earlier row" in findings({"x": np.r_[x, x[:3]], "y": np.r_[clean["y"], clean["y"][:3]]})
    assert "repeat" not in findings({"x": np.r_[x, x[:3]], "y": np.r_[clean["y"], 1 - clean["y"][:3]]})
    assert "repeat" not in findings({"x": np.arange(100) // 2 % 2, "y": clean["y"]})  # alike, as coarse columns are
    assert "unbalanced: 1 is 6.0% of the rows" in findings({"x": x, "y": [int(i < 6) for i in range(100)]})
    eleven = np.arange(110) % 11
    assert findings({"x": rng.normal(size=110), "y": eleven}) == ""  # each is a fair share of eleven
    assert "Class 'c' has only 1 row:" in findings({"x": x, "y": [*"ab" * 49, "a", "c"]})
    holes = {
        "x": [None if i < 7 else v for i, v in enumerate(x)],
        "z": [None if i < 70 else v * 2 for i, v in enumerate(x)],
    }
    assert "missing values in 'x' (7.0%)." in findings(holes | {"y": clean["y"]})
    assert "'z' is missing in 70% of the rows" in findings(holes | {"y": clean["y"]})
    assert "'customer_id' is different in every row" in findings(clean | {"customer_id": rng.permutation(100) + 5})
    many = [f"town {v}" for v in np.r_[np.arange(80), np.zeros(120, int)]]
    assert "'town' has 80 categories" in findings({"x": rng.normal(size=200), "town": many, "y": np.arange(200) % 2})
    almost = [str(v) for v in x[:-1]] + ["unknown"]
    assert "'w' is read as text" in findings(clean | {"w": almost})
    assert "'unknown'" in findings(clean | {"w": almost})
    swallowed = ["x\n" + "1,2\n" * 9, *"uv" * 49, "u"]
    assert "'t' has a text of 10 lines: is a quotation mark left open" in findings(clean | {"t": swallowed})
    assert "has a label of 10 lines" in findings({"x": x, "y": swallowed})


def test_findings_count_only_rows_that_are_used():
    x = np.random.default_rng(4).normal(size=40)
    labels = ["a", "b"] * 10 + [None] * 20
    copies = np.r_[x[:20], np.repeat(x[0], 20)]  # the copies have no label
    assert "repeat" not in findings({"x": copies, "y": labels})
    holes = [*x[:20], *[None] * 20]
    assert "missing" not in findings({"x": holes, "z": x, "y": labels})
    assert "'z' is missing in 50%" in findings({"x": x, "z": [*x[:10], *[None] * 30], "y": labels})


def test_spellings_that_differ_in_capitals_only_are_told():
    x = np.random.default_rng(5).normal(size=40)
    told = findings({"x": x, "c": ["Rome", "rome", "Oslo", "New  York"] * 10, "y": ["Yes", "yes ", "NO", "no"] * 10})
    assert "The target 'y' holds 'NO' and 'no', 'Yes' and 'yes', which are taken for different values" in told
    assert "Column 'c' holds 'Rome' and 'rome'" in told
    assert "different values" not in findings({"x": x, "c": ["Rome", "Oslo"] * 20, "y": ["yes", "no"] * 20})


def test_a_column_that_determines_the_target_is_told():
    rng = np.random.default_rng(6)
    y, x = rng.permutation(np.arange(60) % 3), rng.normal(size=60)
    classes = np.array(["a", "b", "c"])[y]
    for leak in (y * 10, [f"group {k}" for k in y], [f"{k}{'xy'[i % 2]}" for i, k in enumerate(y)]):
        told = findings({"x": x, "leak": leak, "y": classes})
        assert "Column 'leak' determines the target 'y' in every row: is it known before the outcome?" in told
        assert "'x' determines" not in told
    death = [f"{v:.2f}" if k == 2 else None for k, v in zip(y, x, strict=True)]  # that it is there says all
    assert "'leak' determines" in findings({"x": x, "leak": death, "y": classes == "c"})
    nearly = np.r_[y[1:2], y[1:]] if y[0] != y[1] else np.r_[(y[:1] + 1) % 3, y[1:]]
    assert "determines" not in findings({"x": x, "leak": nearly, "y": classes})
    few = {"x": x[:6], "leak": [0, 0, 0, 1, 1, 1], "y": [0, 0, 0, 1, 1, 1]}  # six rows prove nothing
    assert "determines" not in findings(few)
    many = {"leak": np.r_[np.arange(3000) % 7, 7, 7], "y": np.r_[np.arange(3000) % 7 > 2, True, False]}
    assert "determines" not in findings(many)  # the first rows do not decide


@pytest.mark.parametrize(
    ("given", "labels"),
    [
        (["10", "9", "9"], [10, 9, 9]),
        (["1.0", "2.0", "2.0"], [1, 2, 2]),
        ([1.0, 2.0, 2.0], [1, 2, 2]),
        ([0.5, 1.5, 0.5], [0.5, 1.5, 0.5]),
        ([True, False, True], [True, False, True]),
        ([10, 9, 9], [10, 9, 9]),
        (["b", " a", "B"], ["b", "a", "B"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        (["-1", "+1", "-1"], [-1, 1, -1]),
        (["0", "1.5", "0"], [0.0, 1.5, 0.0]),
        ([1e300, 2.0, 2.0], [1e300, 2.0, 2.0]),
        (["12345678901234567891", "12345678901234567890", "7"], ["12345678901234567891", "12345678901234567890", "7"]),
    ],
)
def test_labels_keep_their_meaning(given, labels):
    table = pa.table({"x": [1.5, 2.5, 4.0], "y": given})
    schema = TableSchema.infer(table, "y")
    assert list(schema.classes) == np.unique(np.array(labels)).tolist()
    codes, known = schema.read_target(table)
    read = [schema.classes[code] for code in codes]
    assert read == labels
    assert [type(label) for label in read] == [type(label) for label in labels]
    assert known.all()


def test_labels_of_another_type_are_recognised():
    numbers = TableSchema.infer(pa.table({"x": [1.5, 2.5], "y": [1, 2]}), "y")
    assert numbers.read_target(pa.table({"y": ["2", " 1 ", "2.0", None]}))[0].tolist() == [1, 0, 1, -1]
    assert numbers.read_target(pa.table({"y": [2.0, float("nan")]}))[0].tolist() == [1, -1]
    flags = TableSchema.infer(pa.table({"x": [1.5, 2.5], "y": [True, False]}), "y")
    assert flags.read_target(pa.table({"y": ["True", "false", "1"]}))[0].tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match=r"column 'y', row 2 .*: 3 is not one of the classes 1, 2"):
        numbers.read_target(pa.table({"y": [1, 3]}))


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        (list(range(60)), "60 different numbers: that looks like a quantity, which is regression"),
        (np.arange(60) / 7, "regression"),
        ([f"{i / 7}" for i in range(60)], "regression"),
        ([f"person {i}" for i in range(60)], "identifier"),
        (["a"] * 60, "only one class, 'a'"),
        ([None] * 60, "no value at all"),
        ([float("inf"), 0.0] * 30, "finite"),
        (pd.date_range("2024-01-01", periods=60), "timestamp"),
    ],
)
def test_targets_that_are_no_classes(labels, words):
    with pytest.raises(ValueError, match=words):
        TableSchema.infer(pd.DataFrame({"x": np.arange(60) ** 2, "y": labels}), "y")


# -- reading by a schema ----------------------------------------------------------------------------------------------


def test_what_cannot_be_read_is_named_with_its_row_in_the_file(tmp_path):
    schema = TableSchema.infer(pa.table({"x": [1.5, 2.5], "c": ["u", "v"], "y": [0, 1]}), "y")
    path = write(tmp_path, "t.csv", "x,c\n" + "1,u\n" * 500 + "abc,u\n" + "1,u\n" * 500)
    with pytest.raises(ValueError, match=r"column 'x', row 501 .*'abc' is not a number \(with a decimal point\)"):
        schema.read(read_table(path))
    with pytest.raises(ValueError, match="row 501 "):
        for batch in table_batches(path, rows=64):
            schema.read(batch)
    with pytest.raises(ValueError, match=r"schema mismatch: .* no column 'c'; it has 'x'"):
        schema.read(pa.table({"x": [1.0]}))
    with pytest.raises(ValueError, match="schema mismatch"):
        schema.read_target(pa.table({"x": [1.0]}))
    with pytest.raises(ValueError, match=r"column 'x', row 2 .*: inf is infinite"):
        schema.read(pa.table({"x": [1.0, float("inf")], "c": ["u", "u"]}))
    with pytest.raises(ValueError, match=r"column 'c', row 1 .* of type list<.*>, not text"):
        schema.read(pa.table({"x": [1.0], "c": [["u"]]}))
    with pytest.raises(ValueError, match=r"column 'x', row 1 .* of type date32"):
        schema.read(pd.DataFrame({"x": [pd.Timestamp("2024-01-01").date()], "c": ["u"]}))


def test_unseen_categories_are_kept_as_they_are():
    schema = TableSchema.infer(pa.table({"c": ["u", "v"], "y": [0, 1]}), "y")
    assert schema.read(pa.table({"c": [" w ", None, "?"]})).columns["c"].tolist() == ["w", None, None]
    assert schema.read(pa.table({"c": [1, None]})).columns["c"].tolist() == ["1", None]


def test_a_schema_needs_a_target_rows_and_columns(people):
    with pytest.raises(ValueError, match="no target column 'il'; did you mean 'ill'"):
        TableSchema.infer(people, "il")
    with pytest.raises(ValueError, match="no rows"):
        TableSchema.infer(people.iloc[:0], "ill")
    with pytest.raises(ValueError, match=r"No column is left to learn 'y' from.*constant"):
        TableSchema.infer(pa.table({"x": [1, 1], "y": [0, 1]}), "y")
    with pytest.raises(ValueError, match="several columns named 'x'"):
        TableSchema.infer(pa.table([[1, 2], [3, 4], [0, 1]], names=["x", "x", "y"]), "y")
    with pytest.raises(TypeError, match="pandas, polars or pyarrow"):
        TableSchema.infer({"x": [1]}, "y")
    with pytest.raises(ValueError, match="column 'x' mixes types"):
        TableSchema.infer(pd.DataFrame({"x": [1, "a"], "y": [0, 1]}), "y")
    with pytest.raises(ValueError, match="no column but the target 'y'"):
        TableSchema.infer(pa.table({"y": [0, 1]}), "y")


def test_odd_types_are_read_or_named():
    cut = pd.DataFrame({"x": pd.cut([1.0, 2.0, 3.0, np.nan], 2), "y": [0, 1, 0, 1]})
    schema = TableSchema.infer(cut, "y")
    assert column(schema, "x").categories == ("(0.998, 2.0]", "(2.0, 3.0]")
    assert schema.read(cut).columns["x"].tolist() == ["(0.998, 2.0]", "(0.998, 2.0]", "(2.0, 3.0]", None]
    stored = pa.table({"x": pa.DictionaryArray.from_arrays([0, 1, 0], pa.array([{"a": 1}, {"a": 2}])), "z": [1, 2, 4]})
    schema = TableSchema.infer(stored.append_column("y", pa.array([0, 1, 0])), "y")
    assert "neither numbers nor text" in column(schema, "x").reason
    sparse = pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 1.5, 0.0]), "y": [0, 1, 0]})
    np.testing.assert_array_equal(TableSchema.infer(sparse, "y").read(sparse).columns["x"], [0, 1.5, 0])
    with pytest.raises(ValueError, match="column 'x' is of type complex128, which is neither"):
        TableSchema.infer(pd.DataFrame({"x": [1j, 2j], "y": [0, 1]}), "y")
    with pytest.raises(ValueError, match="column 'x' is of type Int128, which is neither"):
        TableSchema.infer(pl.DataFrame({"x": pl.Series([1, 2], dtype=pl.Int128), "y": [0, 1]}), "y")


def test_a_target_whose_name_is_a_number():
    frame = pd.DataFrame({0: [1.5, 2.5, 4.0], 1: [0, 1, 0]})
    schema = TableSchema.infer(frame, 1)
    assert (schema.target, kinds(schema)) == ("1", {"0": "numeric"})
    assert schema.read_target(frame)[0].tolist() == [0, 1, 0]


def test_json_round_trip(people):
    for target in ("ill", "children", "insured"):
        schema = TableSchema.infer(people, target)
        again = TableSchema.from_json(json.loads(json.dumps(schema.to_json())))
        assert again == schema
        assert [type(label) for label in again.classes] == [type(label) for label in schema.classes]
    with pytest.raises(ValueError, match="not the schema of a table"):
        TableSchema.from_json({"columns": []})


TEXT = st.one_of(
    st.none(), st.sampled_from(["NA", "yes", "no", "1", "2.5", "1,5", "x", "y", "", "2024-01-01", "+3", "t"])
)


@settings(max_examples=80, deadline=None)
@given(data=st.data(), n=st.integers(2, 25))
def test_a_table_can_always_be_read_by_its_own_schema(data, n):
    columns = {name: data.draw(st.lists(TEXT, min_size=n, max_size=n)) for name in "abc"}
    table = pa.table(columns | {"z": np.linspace(0, 1, n) ** 2, "y": ["u", "v"] + ["u"] * (n - 2)})
    schema = TableSchema.infer(table, "y")
    rows = schema.read(table)
    assert len(rows) == n
    for c in schema.columns:
        if c.kind == "left_out":
            assert c.name not in rows.columns
            continue
        values = rows.columns[c.name]
        holes = [v is None for v in values] if c.kind == "categorical" else np.isnan(values)
        assert sum(holes) == c.missing
        assert c.kind != "categorical" or {v for v in values if v is not None} == set(c.categories)
        assert c.kind != "boolean" or set(values[~np.isnan(values)]) <= {0.0, 1.0}
    same_rows(schema.read(table.take(np.arange(n)[::-1])), rows.take(np.arange(n)[::-1]))
