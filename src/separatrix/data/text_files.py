r"""Tables in text: CSV and its kin, as spreadsheets and programs of every make write them.

    bytes → encoding, delimiter, header → batches of columns of text, null where a field is empty

What the text means is decided by whoever asked for it, in one place for all rows: not by the first rows a parser happens to
see. The file is parsed by Arrow; only when that fails is it read line by line, to name the place.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any

_HEAD = 1 << 18
# What people put between fields; where two cut the lines equally well, the comma is the likelier part of a text or a number.
_DELIMITERS = ";\t|,"
# A quoted field: it starts after a delimiter or at the start of a line, and may hold delimiters, newlines and "".
_QUOTED = re.compile(r'(^|[,;\t|\r\n])"(?:[^"]|"")*"')
NO_ROWS = "there are no rows; give a file with at least one."
_OPEN = "is a quotation mark left open?"


class UnreadableFile(ValueError):
    """A file that cannot be read as a table: its `path`, the `line` where it is known, and `what` is wrong."""

    def __init__(self, path: str, what: str, line: int | None = None) -> None:
        super().__init__(f"{path}{'' if line is None else f', line {line}'}: {what}")
        self.path, self.what, self.line = path, what, line


@dataclass(frozen=True)
class TextFormat:
    """How a text file is written."""

    encoding: str
    delimiter: str
    header: tuple[str, ...]
    names: tuple[str, ...]  # the header without blanks around it, and without a last field that has no name
    skipped: int  # lines before the header
    spaced: bool  # whether blanks stand between delimiters and quotation marks

    @property
    def block_size(self) -> int:
        """Bytes read at a time: each block must hold the longest row; some are read ahead, so small ones save memory."""
        return max(1 << 20, 32 * sum(map(len, self.header)))


def check_names(path: str, names: Sequence[str]) -> None:
    """Refuse a table with two columns of one name."""
    for name, count in Counter(names).items():
        if count > 1:
            raise UnreadableFile(path, f"there are {count} columns named {name!r}; rename all but one.")


def text_format(path: str, delimiter: str | None = None) -> TextFormat:
    """How a text file is written, read off its beginning; `delimiter` is found unless it is given."""
    encoding, head, announced = _head(path)
    spaced = re.search(r'[,;\t|] +"', _QUOTED.sub(r"\1", head)) is not None
    if spaced:
        head = re.sub(r'([,;\t|]) +"', r'\1"', head)
    delimiter = delimiter or announced or _sniff(head)
    try:
        header = next(record for record in csv.reader(io.StringIO(head, newline=""), delimiter=delimiter) if record)
    except csv.Error:
        raise UnreadableFile(path, f"a name never ends; {_OPEN}", line=1) from None
    names = [name.strip() for name in header]
    # A delimiter at the end of every line makes a last column that has neither a name nor values.
    if len(names) > 1 and not names[-1]:
        names.pop()
    names = [name or f"column {j}" for j, name in enumerate(names, 1)] if "" in names else names  # as pandas' index
    check_names(path, names)
    return TextFormat(encoding, delimiter, tuple(header), tuple(names), int(bool(announced)), spaced)


class NotPlainNumbers(ValueError):
    """Something in a column of numbers, or in the file, that the parser cannot convert by itself."""


def text_batches(
    path: str, form: TextFormat, columns: Sequence[str] | None = None, numeric: Collection[str] = (), decimal: str = "."
) -> Generator[Any, None, None]:
    """All columns of a text file, or those named, as Arrow record batches of strings; an empty field is null.

    The `numeric` columns are converted to doubles while they are parsed; `NotPlainNumbers` where that fails.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    wanted = list(form.names) if columns is None else list(columns)
    included, place = _selected(form, None if columns is None else wanted)
    read = arrow_csv.ReadOptions(
        block_size=form.block_size, use_threads=False, encoding=form.encoding, skip_rows=form.skipped
    )
    parse = arrow_csv.ParseOptions(delimiter=form.delimiter, newlines_in_values=True)
    types = {name: pa.float64() if name in numeric else pa.string() for name in form.names}
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(form.header, pa.string()) | dict(zip(form.header, types.values(), strict=False)),
        include_columns=included,
        strings_can_be_null=True,
        null_values=[""],
        decimal_point=decimal,
    )
    schema = pa.schema([(name, types[name]) for name in wanted])
    first, end = 0, None
    try:
        with _opened(path, form) as stream, arrow_csv.open_csv(stream, read, parse, convert) as reader:
            for batch in reader:
                last = batch.column(batch.num_columns - 1)
                if len(form.names) < len(form.header) and last.null_count < len(last):
                    at = last.is_valid().index(True).as_py() + first + 1
                    raise UnreadableFile(path, f"the last column has no name, but row {at} has a value there; name it.")
                if len(last):
                    first, end = first + len(last), last[-1].as_py()
                yield pa.record_batch([batch.column(place[name]) for name in wanted], schema=schema)
            if isinstance(end, str) and form.encoding == "utf-8" and not _closed(path, end):
                raise UnreadableFile(
                    path,
                    f"the last row holds {len(end.splitlines())} lines; is a quotation mark left open before them?",
                )
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise NotPlainNumbers if numeric else _diagnosis(path, form, error) from None


def _selected(form: TextFormat, wanted: list[str] | None) -> tuple[list[str], dict[str, int]]:
    """What the parser is asked for (nothing is all), the last column always, and the place of each name in what it gives."""
    if wanted is None or len(set(form.header)) < len(form.header):
        return [], {name: j for j, name in enumerate(form.names)}
    given, last = dict(zip(form.names, form.header, strict=False)), form.header[-1]
    included = [*(given[name] for name in wanted if given[name] != last), last]
    order = {header: j for j, header in enumerate(included)}
    return included, {name: order[given[name]] for name in wanted}


def _opened(path: str, form: TextFormat) -> Any:
    import pyarrow as pa

    if form.spaced and form.encoding == "utf-8":
        return pa.PythonFile(_WithoutBlanks(path, form.delimiter), "r")
    return pa.input_stream(path, compression="gzip" if path.lower().endswith(".gz") else None)


def _open_bytes(path: str) -> Any:
    return gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb")


class _WithoutBlanks:
    """A text file without the blanks between a delimiter and a quotation mark, which the parser would take for text."""

    def __init__(self, path: str, delimiter: str) -> None:
        self._file = _open_bytes(path)
        mark = re.escape(delimiter.encode())
        self._blanks, self._end = re.compile(mark + rb' +(?=")'), re.compile(mark + rb" *$")
        self._delimiter = delimiter.encode()
        self._raw = self._ready = b""
        self.closed = False

    def read(self, n: int) -> bytes:
        """The next bytes, at most so many."""
        while len(self._ready) < n and (part := self._file.read(1 << 16)):
            raw = self._raw + part
            # What follows a delimiter at the end of a part decides whether blanks are dropped.
            at = found.start() if (found := self._end.search(raw)) else len(raw)
            self._ready += self._blanks.sub(self._delimiter, raw[:at])
            self._raw = raw[at:]
        if len(self._ready) < n:
            self._ready, self._raw = self._ready + self._raw, b""
        given, self._ready = self._ready[:n], self._ready[n:]
        return given

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        self.closed = True


def _head(path: str) -> tuple[str, str, str]:
    """How a text file is encoded, its beginning, and the delimiter that a first line such as 'sep=;' announces."""
    with _open_bytes(path) as file:
        raw = file.read(_HEAD) + file.readline(1 << 24)  # the header of a wide table is long
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8"
    if encoding == "utf-8" and b"\0" in raw:
        raise UnreadableFile(path, "it holds binary data, not text; save the table as CSV (UTF-8) or Parquet.")
    # What is not of this encoding is found, with its line, when it is read.
    text = raw.decode(encoding, errors="replace").removeprefix("\ufeff")
    announced = re.match(r'"?sep=(.)"?\r?\n', text, re.IGNORECASE)  # Excel writes and reads it
    text = text[announced.end() :] if announced else text
    if not text.strip():
        raise UnreadableFile(path, "the file is empty; it needs a header line and rows below it.")
    return encoding, text, announced[1] if announced else ""


def _sniff(head: str) -> str:
    """The delimiter: in the header, then as often in the other lines as there, then as often as possible."""
    lines = [line for line in re.split(r"[\r\n]+", _QUOTED.sub(r"\1", head)) if line.strip(" ")][:50]

    def suits(delimiter: str) -> tuple[float, int]:
        counts = [line.count(delimiter) for line in lines]
        return (counts.count(counts[0]) / len(counts) if counts[0] else 0.0), counts[0]

    found = max(_DELIMITERS, key=suits) if lines else ","  # no line is left of one long quoted field
    return found if lines and found in lines[0] else ","


def _closed(path: str, end: str) -> bool:
    """Whether the last field of a file, if it holds several lines, has a quotation mark behind it; the parser asks for none."""
    if "\n" not in end and "\r" not in end:
        return True
    # Blanks behind the quotation mark are part of the text to the parser.
    endings = ['"{}"'.format(text.replace('"', '""')).encode() for text in (end, end.rstrip(" \t"))]
    tail = b""
    with _open_bytes(path) as file:  # from the start: packed files cannot be read from their end
        while part := file.read(1 << 20):
            tail = (tail + part)[-len(endings[0]) - 64 :]
    return tail.rstrip().endswith(tuple(endings))


def _diagnosis(path: str, form: TextFormat, error: Exception) -> UnreadableFile:
    """What is wrong with a file that the parser could not read, with the line."""
    if form.encoding == "utf-8" and (at := _first_other_encoding(path)):
        return UnreadableFile(
            path,
            "the text is not UTF-8. Save the file as UTF-8 (spreadsheets call it 'CSV UTF-8'), or convert it: "
            "iconv -f WINDOWS-1252 -t UTF-8.",
            line=at,
        )
    width, size = len(form.header), form.block_size
    with _open_bytes(path) as raw, io.TextIOWrapper(raw, form.encoding, errors="replace", newline="") as file:
        for _ in range(form.skipped):
            file.readline()
        records = csv.reader(file, delimiter=form.delimiter, skipinitialspace=True)
        line, n_records = 1 + form.skipped, 0
        try:
            for record in records:
                n_records += bool(record)
                if record and len(record) != width:
                    several = records.line_num + form.skipped > line
                    hint = _OPEN if several else "correct the line."
                    mark = {"\t": "tab"}.get(form.delimiter, form.delimiter)
                    fields = f"{len(record)} field{'' if len(record) == 1 else 's'}"
                    sentence = (
                        f"{fields} where the header has {width} (the delimiter is {mark!r}; a field that holds one needs "
                        f"quotation marks); {hint}"
                    )
                    return UnreadableFile(path, sentence, line)
                if sum(map(len, record)) > size - width:
                    return UnreadableFile(path, f"there is a row of more than {size} bytes; {_OPEN}", line)
                line = records.line_num + form.skipped + 1
        except csv.Error:  # a field is longer than any that is meant
            return UnreadableFile(path, f"a field of this row never ends; {_OPEN}", line)
    return UnreadableFile(path, f"{error}. Correct the file." if n_records > 1 else NO_ROWS)


def _first_other_encoding(path: str) -> int:
    """The first line that is not UTF-8; 0 if all are."""
    with _open_bytes(path) as file:
        for at, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return at
    return 0
