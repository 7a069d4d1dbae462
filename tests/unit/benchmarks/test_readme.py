"""The page of all figures."""

import pytest

from benchmarks import __main__ as command
from benchmarks import bars, goals, machine, readme, record

HERE = machine.Machine(2, "a processor", 24, 1.0)
PREPARE = record.Figure("Prepare, p50", "ms", 4.5, 3.0, 1.5, "4-5, n=9", commit="abc1234")
START = record.Figure("start", "s", 0.9)
RUN = record.Run("node", "2026-11-22", HERE, {"python": 12.0}, (PREPARE, START), 300.4)
GONE = bars.Goal("node/gone", "<= 1", name="what is gone", absent="nobody measured it")


def page(*shown: bars.Goal) -> str:
    return readme.page([RUN], [bars.Section("The node", shown)])


def test_a_figure_stands_beside_its_bar_and_says_how_far_off_it_is() -> None:
    text = page(bars.Goal("node/prepare-p50", "<= 3.0 ms", "2.2 ms", "somebody"))
    row = "| Prepare, p50 | 4.5 ms | 3 ms | 1.5 | <= 3.0 ms | **missed** by 1.5 x | 2.2 ms [1] |"
    assert row in text
    assert "1. somebody.\n" in text


def test_a_bar_without_a_figure_says_why() -> None:
    assert "| what is gone | not measured: nobody measured it |" in page(GONE)


def test_a_bar_that_a_test_holds_names_it() -> None:
    held = bars.Goal("x", "<= 1", name="evenness", held="tests/oracle/test_queues.py")
    row = "| evenness | `tests/oracle/test_queues.py` |  |  | <= 1 | held |"
    assert row in page(held)


def test_figures_without_a_bar_are_listed_too() -> None:
    text = page(bars.Goal("node/prepare-p50"))
    assert "| start | 0.9 s |" in text.partition("## Without a bar: the node")[2]
    assert text.count("| Prepare, p50 |") == 1


def test_the_page_counts_what_is_met_and_missed() -> None:
    shown = bars.Goal("node/prepare-p50", "<= 3.0 ms"), bars.Goal("node/start", "<= 1.0 s"), GONE
    message = "Of 3 bars 1 are met, 1 missed, 0 held by tests, and of 1 it cannot be said."
    assert message in page(*shown)


def test_the_machine_stands_by_its_suite() -> None:
    row = "| `node` | 2026-11-22 | 2 x a processor, 24 GiB, load 1.0 | python 12 | 300 s |"
    assert row in page()


def test_every_bar_has_a_figure_a_test_or_a_reason() -> None:
    keys = {key for run in record.load() for key in run.by_id()}
    for section in goals.SECTIONS:
        for goal in section.goals:
            suite = goal.id.partition("/")[0]
            assert goal.id in keys or goal.held or goal.absent or suite in readme.SUITES, goal.id
            assert not goal.held or (record.ROOT / goal.held).is_file(), goal.held


@pytest.mark.parametrize("section", goals.SECTIONS, ids=lambda item: item.title)
def test_every_bar_is_of_a_form_that_can_be_judged(section: bars.Section) -> None:
    figure = record.Figure("any", "ms", 1.0, 1.0, 1.0, says="flat")
    for goal in section.goals:
        assert (bars.judge(figure, goal.bar).met is None) == (not goal.bar), goal


def test_the_page_is_what_the_results_make() -> None:
    assert command.main(["--check"]) == 0
