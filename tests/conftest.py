"""One budget for every property: RATION_EXAMPLES=10000 is the least number of examples of each.

Without it each has the few that it names. What fails is told as code for a regression test.
"""

import os
import re
from collections.abc import Generator, Iterator, Sequence
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck

# xdist tells its processes a width of terminal, which what prints tables would follow.
os.environ.pop("COLUMNS", None)
# Machines are slow at times: no test asserts seconds.
hypothesis.settings.register_profile("patient", deadline=None)
hypothesis.settings.load_profile("patient")
EXAMPLES = "RATION_EXAMPLES"
SECONDS_AN_EXAMPLE, SECONDS_A_RUN = 0.02, 0.4
"""Of a function, and of a state machine with all its steps: measured over all, on two cores."""
_SETTINGS = "_hypothesis_internal_use_settings"
_CALL = re.compile(r"[A-Za-z ]+: \w+(\(.*\))\s*\Z", re.DOTALL)
_AGAIN = re.compile(r"@reproduce_failure\(.*?\)(?= as )", re.DOTALL)


def at_least(examples: int, settings: hypothesis.settings) -> hypothesis.settings:
    """The settings of a property with a budget of so many examples, or with its own if larger."""
    return hypothesis.settings(
        settings,
        max_examples=max(examples, settings.max_examples),
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def as_code(notes: Sequence[str]) -> Iterator[str]:
    """Lines to paste over the property, so that it always tries what failed.

    What a property draws while it runs, and a state machine's steps, have no other form than
    Hypothesis' own, which its next release may not read: those are for finding out.
    """
    for note in notes:
        call = _CALL.match(note)
        again = _AGAIN.search(note)
        if call is not None:
            yield f"@hypothesis.example{call[1]}"
        elif again is not None:
            yield f"@hypothesis.{again[0].removeprefix('@')}"


def _is_property(item: pytest.Item) -> bool:
    return hypothesis.is_hypothesis_test(getattr(item, "obj", None))


def pytest_itemcollected(item: pytest.Item) -> None:
    examples = int(os.environ.get(EXAMPLES, "0"))
    if not examples or not _is_property(item):
        return
    item.add_marker(pytest.mark.timeout(0))
    machine = getattr(item, "cls", None)
    if machine is not None:
        machine.settings = at_least(examples, machine.settings)
        return
    test: Any = item.obj  # type: ignore[attr-defined]
    setattr(test, _SETTINGS, at_least(examples, getattr(test, _SETTINGS)))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow ones first: at the end no process is to wait for another's."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish(session: pytest.Session) -> None:
    examples = int(os.environ.get(EXAMPLES, "0"))
    items = [item for item in session.items if _is_property(item)]
    if not examples or not items:
        return
    machines = sum(getattr(item, "cls", None) is not None for item in items)
    each_s = machines * SECONDS_A_RUN + (len(items) - machines) * SECONDS_AN_EXAMPLE
    minutes = examples * each_s / 60
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        text = f"{len(items)} properties, {examples} examples each: about {minutes:.0f} minutes"
        reporter.write_line(text)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and _is_property(item) and call.excinfo is not None:
        lines = list(as_code(getattr(call.excinfo.value, "__notes__", ())))
        if lines:
            report.sections.append(("as a regression test", "\n".join(lines)))
    return report
