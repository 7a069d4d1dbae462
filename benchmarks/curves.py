"""Cost curves: figures whose names carry the size, as SVG pictures of the documentation. Pure.

A picture is drawn twice, for a light page and a dark one, without a background. The same results
make the same bytes: no date, no random identifiers, and text stays text.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
from matplotlib import ticker
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from benchmarks import record

_SIZE: Final = "SIZE"
"""Stands for the size in a figure's name."""
_SCHEMES: Final = {"light": "#24292f", "dark": "#d0d7de"}
_COLOURS: Final = ("#2f81f7", "#d29922", "#3fb950", "#db61a2", "#8b949e")
_SIZE_INCHES: Final = (7.5, 4.4)
_STYLE: Final = {
    "svg.hashsalt": "ration",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_CLIP_PATH: Final = re.compile(r'<clipPath id="(\w+)"')
_LEAST: Final = 3
"""Sizes without which a curve says nothing."""


@dataclass(frozen=True, slots=True)
class Line:
    """Figures of one line: `name` holds SIZE; `others` are of a size each, under other names.

    `reference`: the figures' other side is drawn. `per_second`: they are rates, of which the
    milliseconds of one are drawn.
    """

    label: str
    name: str
    reference: bool = False
    per_second: bool = False
    others: Mapping[str, int] | None = None

    def figures(self, run: record.Run) -> dict[int, record.Figure]:
        """Return the line's figures by their size, the smallest first."""
        pattern = re.compile(re.escape(self.name).replace(_SIZE, "([0-9,]+)"))
        sizes = dict(self.others or {})
        for figure in run.figures:
            if match := pattern.fullmatch(figure.name):
                sizes[figure.name] = int(match[1].replace(",", ""))
        sized = {sizes[figure.name]: figure for figure in run.figures if figure.name in sizes}
        return dict(sorted(sized.items()))

    def value(self, figure: record.Figure) -> float | None:
        """Return what is drawn of a figure; None where it has no other side."""
        value = figure.reference if self.reference else figure.ours
        return 1000 / value if value and self.per_second else value

    def points(self, run: record.Run) -> list[tuple[int, float]]:
        """Return sizes with their values, the smallest size first."""
        values = [(size, self.value(figure)) for size, figure in self.figures(run).items()]
        return [(size, value) for size, value in values if value is not None]


@dataclass(frozen=True, slots=True)
class Picture:
    """Lines of one suite. The axis of sizes is logarithmic, or symmetrically so where 0 is one."""

    suite: str
    title: str
    sizes: str
    values: str
    lines: tuple[Line, ...]


_FIRST = "a shape not met before"
PICTURES: Final[Mapping[str, Picture]] = {
    "decision-whole-gpu": Picture(
        "allocator",
        "A decision: one whole GPU",
        "nodes of 8 GPUs, half of them in use",
        "milliseconds of a decision",
        (
            Line("Ration", "1 GPU, SIZE nodes", per_second=True),
            Line("Ration, a shape not met before", f"1 GPU, SIZE nodes: {_FIRST}"),
            Line(
                "kube-scheduler's allocator",
                "1 GPU, SIZE nodes",
                reference=True,
                per_second=True,
            ),
        ),
    ),
    "decision-mig": Picture(
        "allocator",
        "A decision: MIG 1g.10gb, every face published",
        "nodes of 8 GPUs, half of these instances in use",
        "milliseconds of a decision",
        (
            Line("Ration", "MIG 1g.10gb, SIZE nodes, every face", per_second=True),
            Line(
                "Ration, a shape not met before",
                f"MIG 1g.10gb, SIZE nodes, every face: {_FIRST}",
            ),
            Line(
                "kube-scheduler's allocator",
                "MIG 1g.10gb, SIZE nodes, every face",
                reference=True,
                per_second=True,
            ),
        ),
    ),
    "prepare-live-claims": Picture(
        "hold",
        "Prepare of a time-slice beside live claims",
        "live claims on 8 GPUs",
        "milliseconds of a Prepare",
        (
            Line("wall, p50", "Prepare at SIZE live claims on 8 GPUs, p50"),
            Line("wall, p99", "Prepare at SIZE live claims on 8 GPUs, p99"),
            Line("processor time of the plugin", "CPU of a Prepare at SIZE live claims on 8 GPUs"),
        ),
    ),
    "prepare-at-once": Picture(
        "beside",
        "Pods of a node at once, a time-slice each",
        "pods at once",
        "milliseconds until the last is prepared",
        (
            Line("Ration", "pods at once, all prepared: SIZE"),
            Line("the least Go driver", "pods at once, all prepared: SIZE", reference=True),
            Line(
                "the least Python plugin", "least Python plugin: pods at once, all prepared: SIZE"
            ),
            Line(
                "NVIDIA's driver, whole GPUs",
                "beside NVIDIA's driver: SIZE Prepares at once, p50",
                reference=True,
                others={"beside NVIDIA's driver: Prepare, p50": 1},
            ),
        ),
    ),
}
"""By the file's name, without the scheme."""


def pictures(runs: Iterable[record.Run]) -> dict[str, str]:
    """Return SVG by a file's name, of every picture whose figures are there."""
    by_suite = {run.suite: run for run in runs}
    return {
        f"{name}-{scheme}.svg": svg(picture, by_suite[picture.suite], ink)
        for name, picture in PICTURES.items()
        if picture.suite in by_suite and _lines(picture, by_suite[picture.suite])
        for scheme, ink in _SCHEMES.items()
    }


def svg(picture: Picture, run: record.Run, ink: str) -> str:
    """Draw a picture; `ink` is the colour of text and axes."""
    parts = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
    style: Any = {**_STYLE, **dict.fromkeys(parts, ink)}
    with mpl.rc_context(style):
        canvas = Canvas(figsize=_SIZE_INCHES, layout="constrained")
        axes = canvas.add_subplot()
        lines = _lines(picture, run)
        for colour, (label, points) in zip(_COLOURS, lines, strict=False):
            sizes, values = zip(*points, strict=True)
            axes.plot(sizes, values, marker="o", markersize=4, color=colour, label=label)
        axes.set_title(picture.title)
        axes.set_xlabel(f"{picture.sizes}\n{_caption(run, picture)}")
        axes.set_ylabel(picture.values)
        _scale(axes, sorted({size for _, points in lines for size, _ in points}))
        canvas.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
        file = io.StringIO()
        canvas.savefig(
            file, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    text = _numbered(file.getvalue())
    return "".join(f"{row.rstrip()}\n" for row in text.splitlines())


def _numbered(text: str) -> str:
    """Return an SVG whose clip paths are numbered.

    Matplotlib's ids are hashes of every bit of their corners, and the last bits of a layout differ
    from one processor to the next; the coordinates themselves are written with six digits.
    """
    for number, hashed in enumerate(_CLIP_PATH.findall(text), start=1):
        text = text.replace(hashed, f"clip{number}")
    return text


def _lines(picture: Picture, run: record.Run) -> list[tuple[str, list[tuple[int, float]]]]:
    """Return labels with points; none where no line has enough of them."""
    lines = [(line.label, line.points(run)) for line in picture.lines]
    lines = [(label, points) for label, points in lines if points]
    return lines if any(len(points) >= _LEAST for _, points in lines) else []


def _scale(axes: Axes, sizes: Sequence[int]) -> None:
    """Both axes are logarithmic; every size that was measured has its tick."""
    axes.set_yscale("log")
    if sizes[0] > 0:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=sizes[1])
        axes.set_xlim(left=-sizes[1] / 10)
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.grid(visible=True, alpha=0.25)


def _caption(run: record.Run, picture: Picture) -> str:
    """Return the machine, and the commits of the figures that are drawn."""
    drawn = [figure for line in picture.lines for figure in line.figures(run).values()]
    commits = sorted({figure.commit for figure in drawn})
    return f"{run.on.words}; {run.date}\ncommit {', '.join(commits)}"
