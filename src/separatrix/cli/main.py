"""`separatrix`: the commands and their options. What each does is in the file of its name, loaded when it is called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from separatrix.cli.errors import guarded
from separatrix.export.formats import FORMATS

# The families of `separatrix.comparison`, the simplest first; a test holds the two together. Importing them would take seconds.
FAMILY_NAMES = (
    *("baseline", "naive-bayes", "least-squares", "lda", "logistic-l1", "logistic", "bayesian-logistic"),
    *("perceptron", "linear-svm", "rda", "qda", "svm-rbf"),
)
NAMES = ", ".join(FAMILY_NAMES)


def _families(incomplete: str) -> list[str]:
    """What Tab may make of a list of families that ends with `incomplete`."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in FAMILY_NAMES if name.startswith(last)]


def _formats(incomplete: str) -> list[str]:
    """The same for the formats of `export`."""
    return [name for name in FORMATS if name.startswith(incomplete)]


app = typer.Typer(
    help="Compare, fit and deploy linear classifiers: a table in, a ranked comparison, a report and a model out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="A table: csv, tsv, parquet or arrow (text also as .gz); - reads stdin.")
]
Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file written by compare or fit.")]
Target = Annotated[str, typer.Option("--target", metavar="COLUMN", help="The column to predict.")]
Loss = Annotated[
    Path | None,
    typer.Option(
        "--loss",
        metavar="COSTS.csv",
        help="What each decision costs: one row per true class (its name in the first column), one column per action.",
    ),
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream", help="Never hold the table, whatever its size; one that is too large for memory never is."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def main() -> None:
    """Run the command line."""
    app()


def _run(command: str, *arguments: Any) -> None:
    """Call `run` of the file of this name; what it needs is imported by then, not before."""
    import_module(f"separatrix.cli.{command}").run(*arguments)


def _version(wanted: bool) -> None:
    if wanted:
        from separatrix import __version__

        print(f"separatrix {__version__}")
        raise typer.Exit


def _format(name: str) -> str:
    if name not in FORMATS:
        raise typer.BadParameter(f"{name!r} is none of {', '.join(FORMATS)}.")
    return name


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


@app.command()
@guarded
def compare(
    data: Data,
    target: Target,
    loss: Loss = None,
    families: Annotated[
        str | None,
        typer.Option(
            "--families",
            metavar="A,B,C",
            autocompletion=_families,
            help=f"Only these families; all of them when left out: {NAMES}.",
        ),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            metavar="N",
            min=2,
            help="Folds of the cross-validation: 5, up to 10 below 100 rows.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", metavar="N", min=0, help="Chooses the folds.")] = 0,
    margin: Annotated[
        float,
        typer.Option(
            "--margin", min=0.0, help="What does not matter in practice: a share of what guessing loses by the score."
        ),
    ] = 0.01,
    metric: Annotated[
        str | None,
        typer.Option(
            "--metric",
            metavar="NAME",
            help="Rank by log_loss, accuracy, auc, balanced_accuracy, f1 or brier; by cost where there is a loss.",
        ),
    ] = None,
    holdout: Annotated[
        str | None,
        typer.Option(
            "--holdout",
            metavar="SHARE|FILE",
            help="Judge the recommended model on rows set aside: a share of them, such as 0.2, or another table.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", metavar="DIR", help="Folder for report.html and model.safetensors.")
    ] = Path("separatrix-out"),
    save_all: Annotated[
        bool,
        typer.Option("--save-all", help="Write every model, as model-NAME.safetensors, beside the recommended one."),
    ] = False,
    exportable: Annotated[
        list[str] | None,
        typer.Option(
            "--exportable", metavar="FORMAT", help="Only families that can be written so: json, onnx, sql; repeatable."
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option("--drop", metavar="COLUMN", help="Do not learn from this column; repeatable.")
    ] = None,
    use: Annotated[
        list[str] | None, typer.Option("--use", metavar="COLUMN", help="Learn from this column only; repeatable.")
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="COLUMN=KIND",
            help="What a column is: numeric, categorical, target (categories by their classes), text (by its words), boolean "
            "or date; repeatable.",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option("--group", metavar="COLUMN", help="Rows with the same value here share a fold.")
    ] = None,
    weight: Annotated[
        str | None, typer.Option("--weight", metavar="COLUMN", help="How often each row counts, 2 as the row twice.")
    ] = None,
    time: Annotated[
        str | None, typer.Option("--time", metavar="COLUMN", help="Predict every fold from the rows before it in time.")
    ] = None,
    rare_class: Annotated[
        Literal["drop", "merge"] | None,
        typer.Option("--rare-class", metavar="drop|merge", help="What becomes of classes with fewer rows than folds."),
    ] = None,
    ordered: Annotated[
        str | None,
        typer.Option(
            "--ordered", metavar="LEVEL,LEVEL", help="The classes from the lowest to the highest, if ordered."
        ),
    ] = None,
    stage_seconds: Annotated[
        float,
        typer.Option("--stage-seconds", min=1, metavar="S", help="The most that a family, or another stage, may take."),
    ] = 60.0,
    stream: Stream = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compare the whole family by cross-validation; write a report and the recommended model."""
    columns = {"drop": drop or [], "use": use or [], "types": types or [], "group": group, "rare_class": rare_class}
    columns |= {"weight": weight, "time": time, "ordered": ordered}
    choice = (margin, metric, holdout)
    _run(
        "compare",
        data,
        target,
        loss,
        families,
        folds,
        seed,
        *choice,
        out,
        save_all,
        exportable or [],
        columns,
        stage_seconds,
        stream,
        quiet,
    )


@app.command()
@guarded
def fit(
    data: Data,
    target: Target,
    model: Annotated[
        str, typer.Option("--model", metavar="NAME", autocompletion=_families, help=f"The family to fit: {NAMES}.")
    ],
    output: Annotated[
        Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="The model file: .safetensors.")
    ],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A parameter of the model; may be given several times."),
    ] = None,
    loss: Loss = None,
    stream: Stream = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Fit one model and write it to a file."""
    _run("fit", data, target, model, settings or [], loss, output, stream, quiet)


@app.command()
@guarded
def predict(
    model: Model,
    data: Data,
    output: Annotated[
        str,
        typer.Option(
            "-o", "--out", "--output", metavar="OUT", help=".csv, .tsv, .parquet or .arrow; - writes CSV to stdout."
        ),
    ],
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="COL,COL", help="Columns of DATA to copy into OUT.")
    ] = None,
    loss: Loss = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Predict every row of a table of any size: the label, and the probability of each class."""
    _run("predict", model, data, output, keep, loss, quiet)


@app.command()
@guarded
def evaluate(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None, typer.Option("-o", "--out", "--output", metavar="FILE", help="What was found, as JSON.")
    ] = None,
    debug: Debug = False,
) -> None:
    """Judge a model on a table with known classes: scores with intervals, confusion, calibration, drifted columns."""
    _run("evaluate", model, data, output)


@app.command()
@guarded
def explain(
    model: Model,
    data: Data,
    row: Annotated[int, typer.Option("--row", min=1, help="Which row of DATA, counted from 1.")] = 1,
    debug: Debug = False,
) -> None:
    """Show what pushed a linear model, or naive Bayes, to its decision about one row, and the nearest change that flips it."""
    _run("explain", model, data, row)


@app.command()
@guarded
def inspect(model: Model, debug: Debug = False) -> None:
    """Show what is in a model file: family, classes, columns, scores, checksum."""
    _run("inspect", model)


@app.command()
@guarded
def export(
    model: Model,
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="|".join(FORMATS), callback=_format, autocompletion=_formats, help="What to write."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--out", "--output", metavar="FILE", help="The file to write.")],
    dialect: Annotated[
        Literal["duckdb", "postgresql", "sqlite"],
        typer.Option("--dialect", metavar="duckdb|postgresql|sqlite", help="The database, for --to sql."),
    ] = "duckdb",
    table: Annotated[str, typer.Option("--table", metavar="NAME", help="The table to read, for --to sql.")] = "data",
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COLUMN",
            help="A column that comes along, such as a key, for --to sql; may be given several times. Without one the rows are "
            "numbered in the order in which the database reads them.",
        ),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a model as a SQL query, an ONNX graph or readable JSON."""
    _run("export", model, to, dialect, table, keep or [], output)


@app.command()
@guarded
def explore(
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="A table to show; points of your own when left out.")
    ] = None,
    target: Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="The column to predict.")] = None,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="A free one by default.")] = 0,
    token: Annotated[
        str | None,
        typer.Option("--token", metavar="TEXT", help="The secret part of the address, random by default."),
    ] = None,
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page.")] = True,
    debug: Debug = False,
) -> None:
    """Draw points, drag them, and watch the boundaries of all families move: a page on this machine alone."""
    _run("explore", data, target, port, token, browser)
