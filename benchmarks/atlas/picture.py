"""The ratio over rows × columns, a panel per estimator: blue where ours is ahead, orange where it is behind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from benchmarks.atlas.verdict import Outcome

SPAN = 2.0  # the colours end at 10^±2


def paint(outcomes: Sequence[Outcome], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.colors import LinearSegmentedColormap

    names = sorted({outcome.problem.estimator for outcome in outcomes})
    across = min(5, len(names))
    down = math.ceil(len(names) / across)
    colours = LinearSegmentedColormap.from_list("ratio", ["#b35806", "#f1a340", "#e8e8e8", "#67a9cf", "#08519c"])
    figure, axes = plt.subplots(down, across, figsize=(3.0 * across, 2.7 * down), squeeze=False, layout="constrained")
    drawn = None
    for panel, name in zip(axes.flat, names, strict=False):
        for won, marker in ((True, "o"), (False, "s")):  # the shape says it too
            own = [o for o in outcomes if o.problem.estimator == name and o.won == won]
            heights = [max(-SPAN, min(SPAN, math.log10(max(o.ratio, 1e-6)))) for o in own]
            drawn = panel.scatter(
                [o.problem.n for o in own],
                [o.problem.d for o in own],
                c=heights,
                cmap=colours,
                vmin=-SPAN,
                vmax=SPAN,
                marker=marker,
                s=34 if won else 44,
                edgecolors="#333333" if won else "#000000",
                linewidths=0.4 if won else 1.4,
            )
        panel.set(xscale="log", yscale="log", xlim=(30, 5e5), ylim=(1.5, 1e5), title=name)
    for panel in axes.flat[len(names) :]:
        panel.set_axis_off()
    figure.supxlabel("rows")
    figure.supylabel("columns")
    if drawn is not None:
        bar = figure.colorbar(drawn, ax=axes, shrink=0.6, ticks=[-2, -1, 0, 1, 2])
        bar.ax.set_yticklabels(["0.01×", "0.1×", "1×", "10×", "100×"])
        bar.set_label("best peer's seconds / ours (squares: lost)")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
