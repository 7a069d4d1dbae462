"""The page of all figures, benchmarks/README.md, from what is stored alone. Pure."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

from benchmarks import bars, record

_HEAD = """# Figures

Written by `python -m benchmarks` from `benchmarks/results`; change nothing here. How each figure is
measured, and why some are missed, is told in [How fast it is](../docs/explanation/performance.md).

`make bench` measures all of them anew, fails where one has become more than 1.5 times worse than
the committed one, and writes this page. *Beside* was measured in the same run, in turn. *Elsewhere*
was published, or measured at another time on another machine, so no ratio is given. A bar of `x` is
of the ratio, any other of ours.
"""
_COLUMNS = (
    "Figure", "Ours", "Beside", "Ratio", "Bar", "Met", "Elsewhere", "Spread", "Commit",
)  # fmt: skip
_PLAIN = ("Figure", "Ours", "Beside", "Ratio", "Spread", "Commit")
_NOTHING = "not measured"
_LATER = "the stored run did not have it yet"
SUITES: Mapping[str, str] = {
    "allocator": "allocator",
    "beside": "node beside the Go driver",
    "chaos": "a cluster that is broken on purpose",
    "commands": "the command line",
    "control_plane": "the whole control plane",
    "control_plane_5000": "the whole control plane, 5,000 nodes",
    "control_plane_kwok": "the whole control plane, kubelets played by kwok",
    "herd": "many plugins at once",
    "hold": "what must hold under load",
    "node": "the node",
    "nodes": "nodes on demand",
    "page": "the page and the JSON API",
    "placement": "placement",
    "quality": "quality beside optima",
    "queues": "queues, gangs and preemption",
    "soak": "the soak",
    "soak_controllers": "the soak of the controllers",
    "soak_pods": "the soak of real pods",
}


def page(runs: Sequence[record.Run], sections: Sequence[bars.Section]) -> str:
    """All of it, Markdown."""
    figures = {key: figure for run in runs for key, figure in run.by_id().items()}
    notes = _Notes()
    parts = [_HEAD, _summary(figures, sections)]
    for section in sections:
        rows = [_row(goal, figures.get(goal.id), notes) for goal in section.goals]
        parts.append(f"## {section.title}\n\n{_table(_COLUMNS, rows)}")
    barred = {goal.id for section in sections for goal in section.goals}
    parts += _others(runs, barred)
    parts.append(f"## Where and when\n\n{_machines(runs)}")
    if notes.sources:
        parts.append(f"## Sources\n\n{notes.text}")
    return "\n".join(parts)


class _Notes:
    """Sources by their number on the page."""

    def __init__(self) -> None:
        self.sources: dict[str, int] = {}

    def mark(self, source: str) -> str:
        if not source:
            return ""
        return f" [{self.sources.setdefault(source, len(self.sources) + 1)}]"

    @property
    def text(self) -> str:
        return "".join(f"{number}. {source}.\n" for source, number in self.sources.items())


def _summary(figures: Mapping[str, record.Figure], sections: Sequence[bars.Section]) -> str:
    met = missed = held = untold = 0
    for goal in itertools.chain.from_iterable(section.goals for section in sections):
        if not goal.bar:
            continue
        figure = figures.get(goal.id)
        verdict = bars.judge(figure, goal.bar).met if figure else None
        met += verdict is True
        missed += verdict is False
        held += figure is None and bool(goal.held)
        untold += verdict is None and not (figure is None and goal.held)
    return (
        f"Of {met + missed + held + untold} bars {met} are met, {missed} missed, "
        f"{held} held by tests, and of {untold} it cannot be said.\n"
    )


def _row(goal: bars.Goal, figure: record.Figure | None, notes: _Notes) -> tuple[str, ...]:
    anchor = goal.anchor + notes.mark(goal.source) if goal.anchor else ""
    if figure is None:
        name = goal.name or goal.id.partition("/")[2].replace("-", " ")
        text = f"`{goal.held}`" if goal.held else f"{_NOTHING}: {goal.absent or _LATER}"
        return (name, text, "", "", goal.bar, "held" if goal.held else "", anchor, "", "")
    return (
        figure.name,
        _amount(figure.ours, figure.unit),
        *_beside(figure),
        goal.bar,
        _met(bars.judge(figure, goal.bar), goal.bar),
        anchor,
        figure.spread,
        figure.commit,
    )


def _met(verdict: bars.Verdict, bar: str) -> str:
    if verdict.met is None:
        return "cannot be said" if bar else ""
    return "yes" if verdict.met else f"**missed** {verdict.by}".rstrip()


def _beside(figure: record.Figure) -> tuple[str, str]:
    if figure.reference is None or figure.ratio is None:
        return "", ""
    return _amount(figure.reference, figure.unit), f"{figure.ratio:.3g}"


def _amount(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"  # noqa: PLR2004
    return f"{number} {unit}".rstrip()


def _others(runs: Iterable[record.Run], barred: set[str]) -> list[str]:
    parts = []
    for run in runs:
        rows = [
            (
                figure.name,
                _amount(figure.ours, figure.unit),
                *_beside(figure),
                figure.spread,
                figure.commit,
            )
            for key, figure in run.by_id().items()
            if key not in barred
        ]
        if rows:
            title = SUITES.get(run.suite, run.suite)
            parts.append(f"## Without a bar: {title}\n\n{_table(_PLAIN, rows)}")
    return parts


def _machines(runs: Iterable[record.Run]) -> str:
    """Each suite's machine, the ms that fixed work took on it, and the suite's seconds."""
    rows = [
        (
            f"`{run.suite}`",
            run.date,
            run.on.words,
            ", ".join(f"{name} {ms:g}" for name, ms in run.calibrators.items()) or _NOTHING,
            "" if run.took_s is None else f"{run.took_s:.0f} s",
        )
        for run in runs
    ]
    return _table(("Suite", "Day", "Machine", "Fixed work, ms", "Took"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '/') for cell in row)} |\n" for row in lines)
