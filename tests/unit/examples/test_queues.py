"""The queues that are shown, and the numbers that the page about them counts with."""

import datetime as dt
import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.resources import queues
from driver.scheduling.queues import fair_share, status, tree
from driver.scheduling.queues import messages as queue_messages
from hack.crds import kinds
from tests.support.builders.queues import NOON, a_workload, an_engine, in_gpus, queue, some

ROOT = Path(__file__).parents[3]
RAW = [*yaml.safe_load_all((ROOT / "examples" / "queues" / "queues.yaml").read_text())]
PAGE = (ROOT / "docs" / "explanation" / "queues.md").read_text()
HOW_TO = (ROOT / "docs" / "how-to" / "queues.md").read_text()
GPUS = 16


def the_queues() -> list[queues.Queue]:
    return [queues.parse(entry) for entry in RAW]


def shown(fractions: dict[str, Fraction]) -> str:
    return " | ".join(
        queue_messages.gpus(round(fractions[name] * 1000))
        for name in ("vision", "speech", "serving")
    )


def test_the_example_is_accepted_as_it_stands() -> None:
    queue_tree = tree.build_tree(the_queues())
    assert not queue_tree.faults
    assert queue_tree.leaves == ("", "serving", "speech", "vision")


@pytest.mark.parametrize(
    ("case", "wants"),
    [
        ("every queue requests more than there is", {}),
        ("`serving` requests 2", {"serving": 2}),
        ("`vision` requests 3", {"vision": 3}),
        ("`speech` requests nothing", {"speech": 0}),
    ],
)
def test_the_shares_that_are_told_are_those_that_are_computed(
    case: str, wants: dict[str, int]
) -> None:
    queue_tree = tree.build_tree(the_queues())
    leaves = ("vision", "speech", "serving")
    demand = {name: Fraction(wants.get(name, 2 * GPUS), GPUS) for name in leaves}
    fractions = in_gpus(fair_share.fair_shares(queue_tree, some(GPUS), demand), GPUS)
    assert f"| {case} | {shown(fractions)} |" in PAGE


def test_the_limit_that_is_told_is_told_so() -> None:
    queue_engine = an_engine(GPUS, *the_queues())
    queue_engine.charge("x", "serving", some(6))
    exceeded_limit = queue_engine.exceeded_limit("serving", some(1))
    assert exceeded_limit is not None
    assert f"    {queue_messages.limit_message(exceeded_limit)}\n" in PAGE


def test_the_past_counts_as_it_is_told() -> None:
    queue_engine = an_engine(
        8, *(queue(name, half_life_s=6 * 3600) for name in ("first", "second"))
    )
    queue_engine.queue_statuses(NOON)
    queue_engine.charge("x", "first", some(8), NOON)
    queue_engine.schedule_order([a_workload(f"s{n}", "second") for n in range(8)], NOON + 6 * 3600)
    fractions = in_gpus(queue_engine.fair_shares(), 8)
    assert [float(fractions[name]) for name in ("first", "second")] == pytest.approx([2.0, 6.0])
    average = queue_engine.queue_statuses(NOON + 6 * 3600)["first"].average_share
    assert average is not None
    assert average * 8 == pytest.approx(4.0)
    assert "average is 4. Now" in PAGE
    assert "the fair shares are 2 GPUs for the first and 6 for the second" in PAGE


def test_the_status_that_is_shown_is_written_so() -> None:
    queue_engine = an_engine(GPUS, queue("vision", deserved=4), queue("other"))
    queue_engine.charge("x", "vision", some(6.5))
    others = [a_workload(f"o{n}", "other") for n in range(GPUS)]
    queue_engine.schedule_order([a_workload("v", "vision", since=-7500), *others], NOON)
    _, fence, rest = HOW_TO.partition("```yaml\nstatus:\n")
    reported = yaml.safe_load("status:\n" + rest.partition("```")[0])["status"]
    assert fence
    moment = dt.datetime(2027, 1, 15, 8, tzinfo=dt.UTC)
    rendered = status.render(queue_engine.queue_statuses(NOON)["vision"], None, 1, moment, {})
    assert {name: rendered[name] for name in reported} == reported


def cell(raw: Any, path: str) -> str:
    """Return what kubectl prints of a field, or of a condition by its type."""
    steps = path.replace('[?(@.type=="Accepted")]', ".Accepted").strip(".").split(".")
    for step in steps:
        if isinstance(raw, list):
            raw = next(entry for entry in raw if entry["type"] == step)
        else:
            raw = raw.get(step)
        if raw is None:
            return ""
    return str(raw)


def test_the_listing_that_is_shown_is_printed_so() -> None:
    queue_engine = an_engine(GPUS, *the_queues())
    for name, gpus in (("vision", 10), ("speech", 2), ("serving", 4)):
        queue_engine.charge(name, name, some(gpus))
    waiting = [("vision", 300, 2), ("speech", 7500, 1), ("serving", 40, 1)]
    queue_engine.schedule_order(
        [a_workload(n, n, gpus, since=-age) for n, age, gpus in waiting], NOON
    )
    moment = dt.datetime.fromtimestamp(NOON, dt.UTC)
    columns = [column for column in kinds.QUEUE.columns if column.head != "Age"]
    lines = [["NAME", *(column.head.upper() for column in columns)]]
    for raw in sorted(RAW, key=lambda item: str(item["metadata"]["name"])):
        name = raw["metadata"]["name"]
        shown = status.render(queue_engine.queue_statuses(NOON)[name], None, 1, moment, {})
        spec = {"weight": 1, **raw["spec"]}
        cells = [cell({"spec": spec, "status": shown}, column.path) for column in columns]
        lines.append([name, *(name for name in cells if name)])
    words = [line.split() for line in HOW_TO.splitlines()]
    for line in lines:
        assert line in words, line


def test_the_fault_that_is_shown_is_told_so() -> None:
    fault = tree.build_tree([queue("vision", deserved=4, limit=3)]).faults["vision"]
    assert f"    {fault}\n" in HOW_TO


RESULTS = ROOT / "benchmarks" / "results" / "queues.json"
ROWS = {
    "mean wait": ("mean wait", "{:.0f} h"),
    "p95 of waits": ("p95 wait", "{:.0f} h"),
    "longest wait": ("longest wait", "{:.0f} h"),
    "finish-time fairness of the worst team": ("finish-time fairness of the worst team", "{:.2f}"),
    "smallest share of a team, relative to its fair share": (
        "least share of a team to its fair one",
        "{:.2f}",
    ),
    "Jain's index of these shares": ("Jain's index of shares to fair ones", "{:.2f}"),
}


@pytest.mark.parametrize("row", ROWS)
def test_quoted_comparisons_with_other_orders_were_measured(row: str) -> None:
    figure, form = ROWS[row]
    result = {figure["name"]: figure for figure in json.loads(RESULTS.read_text())["figures"]}
    fifo, strict = (
        result[f"Gavel, {figure} beside {other}"] for other in ("FIFO", "strict priority")
    )
    # Stored are four digits: what ends in a 5 was more, as far as that tells.
    cells = [entry + 1e-9 for entry in (fifo["ours"], fifo["reference"], strict["reference"])]
    assert f"| {row} | {' | '.join(form.format(entry) for entry in cells)} |" in PAGE
