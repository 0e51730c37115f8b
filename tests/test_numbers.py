"""Numbers in text as people and spreadsheets write them: which sign is the decimal mark, and what stands around the digits."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from separatrix.tables.reading import read_table, table_batches
from separatrix.tables.schema import TableSchema


def inferred(folder, delimiter: str, columns: dict[str, list[str]], quote: str = "") -> tuple[TableSchema, pa.Table]:
    """The schema of a file with these columns and a target, and what was read."""
    n = len(next(iter(columns.values())))
    columns = columns | {"y": [f"class {'ab'[i % 2]}" for i in range(n)]}
    lines = [
        delimiter.join(columns),
        *(delimiter.join(f"{quote}{c}{quote}" for c in row) for row in zip(*columns.values(), strict=True)),
    ]
    path = folder / "t.csv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table = read_table(path)
    return TableSchema.infer(table, "y"), table


def finding(schema: TableSchema, *words: str) -> str:
    """The one finding that has all these words."""
    (found,) = [text for text in schema.findings if all(word in text for word in words)]
    return found


THOUSANDS = {  # delimiter, columns, what they are, and the decimal mark
    "english": ("\t", {"pay": ["17,978", "3,478", "981"]}, {"pay": [17978, 3478, 981]}, "."),
    "german": (";", {"pay": ["1.795", "431", "2.100"]}, {"pay": [1795, 431, 2100]}, ","),
    "german without a hint but the delimiter": (";", {"pay": ["1.795", "3.431"]}, {"pay": [1795, 3431]}, ","),
    "german with decimals": (
        ";",
        {"rate": ["0,35", "1,2", "7"], "pay": ["1.795", "2.431", "17.000"]},
        {"rate": [0.35, 1.2, 7], "pay": [1795, 2431, 17000]},
        ",",
    ),
    "german, tabs": ("\t", {"pay": ["1.795", "431", "17.978"]}, {"pay": [1795, 431, 17978]}, ","),
    "millions": ("\t", {"pay": ["1.234.567", "1.795"]}, {"pay": [1234567, 1795]}, ","),
    "three decimals": ("\t", {"size": ["1.795", "2.431"]}, {"size": [1.795, 2.431]}, "."),
    "three decimals below one": (";", {"size": ["1.795", "0.431"]}, {"size": [1.795, 0.431]}, "."),
    "whole numbers": (";", {"n": ["1795", "431"]}, {"n": [1795, 431]}, "."),
    "both in one": (";", {"pay": ["17.978,20", "3,5"]}, {"pay": [17978.2, 3.5]}, ","),
    "english, both in one": ("|", {"pay": ["17,978.20", "3.5"]}, {"pay": [17978.2, 3.5]}, "."),
}


@pytest.mark.parametrize("case", THOUSANDS)
def test_points_and_commas(tmp_path, case):
    delimiter, columns, expected, decimal = THOUSANDS[case]
    schema, table = inferred(tmp_path, delimiter, columns)
    assert schema.decimal == decimal
    for name, values in expected.items():
        np.testing.assert_array_equal(schema.read(table).columns[name], values)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("english", ["'17,978' as 17978", "comma is taken for a sign between thousands"]),
        ("german", ["'1.795' as 1795", "point is taken for a sign between thousands"]),
        ("german with decimals", ["Column 'pay'", "'1.795' as 1795", "between thousands"]),
        ("three decimals", ["'1.795' as 1.795", "point is taken for a decimal point"]),
        ("both in one", ["'17.978,20' as 17978.2"]),
    ],
)
def test_a_reading_that_could_be_another_is_told(tmp_path, case, words):
    schema, _ = inferred(tmp_path, *THOUSANDS[case][:2])
    finding(schema, "is read as numbers", *words)


@pytest.mark.parametrize("case", ["three decimals below one", "whole numbers"])
def test_a_plain_reading_is_not(tmp_path, case):
    schema, _ = inferred(tmp_path, *THOUSANDS[case][:2])
    assert not any("is read as numbers" in text for text in schema.findings)


def test_between_commas_a_comma_stands_between_thousands(tmp_path):
    schema, table = inferred(tmp_path, ",", {"pay": ["17,978", "3,478", "981"]}, quote='"')
    np.testing.assert_array_equal(schema.read(table).columns["pay"], [17978, 3478, 981])
    schema, table = inferred(tmp_path, ",", {"pay": ["17.978,20", "3,5", "981"]}, quote='"')
    np.testing.assert_array_equal(schema.read(table).columns["pay"], [17978.2, 3.5, 981])


DRESSED = {
    "no-break space": (",", ["17\u00a0978,20", "3,5"], [17978.2, 3.5], "17978.2"),
    "narrow space": (",", ["17\u202f978,20", "3,5"], [17978.2, 3.5], "17978.2"),
    "apostrophe": (".", ["17'978.20", "1’234’567.5"], [17978.2, 1234567.5], "17978.2"),
    "percent": (",", ["10,6 %", "7,25%"], [10.6, 7.25], "in percent points."),
    "some percent": (",", ["10,6 %", "0,5"], [10.6, 0.5], "also where the sign is missing"),
    "euro": (",", ["17.978,20 €", "-3,50 €"], [17978.2, -3.5], "without the sign €."),
    "dollar": (".", ["$17978.20", "-$3.50", "$-4", "USD 5.5"], [17978.2, -3.5, -4, 5.5], "without the sign $."),
    "currencies": (".", ["$17978.20", "€3.50"], [17978.2, 3.5], "amounts of one currency"),
    "minus": (".", ["−0.35", "1.5"], [-0.35, 1.5], "as -0.35"),
    "accounting": (".", ["(7.00)", "($8.50)", "$(9.25)", "1.5"], [-7, -8.5, -9.25, 1.5], "'(7.00)' as -7"),
}


@pytest.mark.parametrize("case", DRESSED)
def test_signs_around_numbers(case):
    decimal, texts, values, words = DRESSED[case]
    table = pa.table({"x": texts * 10, "y": ["a", "b"] * (5 * len(texts))})
    schema = TableSchema.infer(table, "y")
    assert (schema.columns[0].kind, schema.decimal) == ("numeric", decimal)
    np.testing.assert_array_equal(schema.read(table).columns["x"], values * 10)
    finding(schema, "Column 'x' is read as numbers", words)
    for i, (text, value) in enumerate(zip(texts, values, strict=True)):  # alone in its batch, a text means the same
        assert schema.read(table.slice(i, 1)).columns["x"][0] == value, text


@pytest.mark.parametrize("text", ["1,23,4", "12,34", "1 2345", "5 % of it", "3-4", "(2", "1.2.3", "€", "0,350,000"])
def test_what_is_no_number_with_a_decimal_point(text):
    schema = TableSchema.infer(pa.table({"x": [1.5, 2.5], "y": [0, 1]}), "y")
    with pytest.raises(ValueError, match="is not a number"):
        schema.read(pa.table({"x": [text]}))


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.decimals(-(10**9), 10**9, places=2), min_size=2, max_size=20),
    german=st.booleans(),
    sign=st.sampled_from(["", " €", "%"]),
)
def test_what_a_spreadsheet_writes_is_read_back(values, german, sign):
    texts = [f"{value:,.2f}" for value in values]
    if german:
        texts = [text.translate(str.maketrans(",.", ".,")) for text in texts]
    table = pa.table(
        {
            "x": [text + sign for text in texts],
            "z": np.arange(len(texts)) ** 2,
            "y": ["a", "b"] + ["a"] * (len(texts) - 2),
        }
    )
    schema = TableSchema.infer(table, "y")
    if schema.columns[0].kind == "left_out":  # constant
        assert len(set(values)) == 1
        return
    np.testing.assert_array_equal(schema.read(table).columns["x"], [float(value) for value in values])


# -- what stands where a number is missing ----------------------------------------------------------------------------


def numbers_and(*others: str, n: int = 50) -> pa.Table:
    texts = [*others, *(str(value) for value in np.random.default_rng(0).normal(size=n - len(others)).round(3))]
    return pa.table({"x": texts, "z": np.arange(n) ** 2, "y": ["a", "b"] * (n // 2)})


def test_one_text_that_returns_among_numbers_is_missing(tmp_path):
    table = numbers_and(*["unbekannt"] * 6)
    schema = TableSchema.infer(table, "y")
    assert (schema.columns[0].kind, schema.columns[0].missing, schema.columns[0].absent) == ("numeric", 6, "unbekannt")
    assert np.isnan(schema.read(table).columns["x"]).sum() == 6
    finding(schema, "'unbekannt' in 6 rows, which is read as missing")
    assert TableSchema.from_json(schema.to_json()) == schema
    with pytest.raises(ValueError, match="'other' is not a number"):
        schema.read(pa.table({"x": ["other"], "z": [1]}))
    path = tmp_path / "t.csv"
    path.write_text("x,z\nunbekannt,1\n2.5,1\n")
    found = np.concatenate([schema.read(batch).columns["x"] for batch in table_batches(path, 1)])
    np.testing.assert_array_equal(found, [np.nan, 2.5])


@pytest.mark.parametrize("others", [["unknown"], ["10+"] * 6, ["<5"] * 6, ["low", "high"] * 3, ["unknown"] * 12])
def test_other_texts_among_numbers_are_not(others):
    schema = TableSchema.infer(numbers_and(*others), "y")
    assert schema.columns[0].kind != "numeric"


def test_units_in_the_first_row_are_asked_about():
    schema = TableSchema.infer(numbers_and("cm"), "y")
    finding(schema, "'x' is read as text", "'cm'", "second header line")


@pytest.mark.parametrize("code", [-999, 9999, -99])
def test_a_code_far_from_all_other_values_is_told(code):
    x = np.random.default_rng(1).normal(size=60)
    schema = TableSchema.infer(pa.table({"x": np.r_[x[:57], [code] * 3], "y": ["a", "b"] * 30}), "y")
    finding(schema, f"'x' is {code} in 3 rows", "missing value")
    for other in (np.r_[x[:59], [code]], np.r_[x[:57] * 1e4, [code] * 3], np.r_[x[:57], [-123] * 3]):
        clean = TableSchema.infer(pa.table({"x": other, "y": ["a", "b"] * 30}), "y")
        assert not any("missing value" in text for text in clean.findings)


def test_numbers_that_start_with_zeros_are_codes():
    table = pa.table({"zip": ["01", "1", "02"] * 10, "x": np.arange(30) ** 2, "y": ["a", "b"] * 15})
    schema = TableSchema.infer(table, "y")
    assert schema.columns[0].categories == ("01", "02", "1")
    finding(schema, "'zip'", "start with 0")
    assert TableSchema.infer(table, "zip").classes == ("01", "02", "1")
    assert (
        TableSchema.infer(pa.table({"x": ["0", "10", "0.5"], "y": ["a", "b", "a"]}), "y").columns[0].kind == "numeric"
    )
