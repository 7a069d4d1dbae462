"""No code of the product that only tests call, and none that nothing calls (vulture)."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import vulture
from vulture import core

ROOT = Path(__file__).parents[2]
PRODUCT = ("driver", "simulator")
TOOLS = ("hack", "benchmarks")
KINDS = {"function", "method", "class", "property", "import", "unreachable_code"}
"""Kinds that are judged, and constants; fields belong to documents of others."""
REGISTERED = ["@pydantic.*", "@*.command*", "@*.callback*", "@*fault*", "@*.get", "@*.route"]
"""Decorators that hand a function to a library, which calls it."""
CALLED_BY_NAME = {
    "driver/cli/lazy.py": {"format_help"},  # click
    "driver/cli": {"DETAILS", "UNCORDON_DETAILS", "uncordon"},  # the lazy table of commands
    "driver/controller/web/render": {"object_page", "segments", "ticks", "with_query"},  # Jinja
    "driver/kubeletplugin/rpc/registration.py": {"NotifyRegistrationStatus"},  # gRPC
    "driver/cli/migrate/render.py": {"ignore_aliases"},  # PyYAML
    "hack/crds/written.py": {"ignore_aliases"},
    "driver/runtime/metrics/server.py": {"do_GET", "log_message"},  # http.server
    "benchmarks/commands.py": {"do_GET", "log_message"},
    "simulator": {"*"},  # the C library's calls, the faults and layouts of the command line
}
"""Names that other programs, templates and libraries call."""
FOR_TESTS = {
    # Sizes of caches, whose bounds tests assert.
    "driver/kube/events/series.py": {"entry_count"},
    "driver/kubeletplugin/rpc/health_stream.py": {"stream_count"},
    "driver/scheduling/allocator": {"cached_shapes", "heap_size", "rejection_counts"},
    # One round of a thread's loop, and what a test waits for.
    "driver/kubeletplugin/status/claim_status.py": {"write_due"},
    "driver/scheduling/lifecycle/bound_pods.py": {"REPAIR_BOUND_S"},
    # Kinds that users' workloads have and the driver does not read.
    "driver/kube/gvr.py": {"JOBS"},
}
"""Names that tests alone use, as no test could ask for them otherwise."""


def is_allowed(path: str, name: str) -> bool:
    return any(
        path.startswith(prefix) and not {"*", name}.isdisjoint(names)
        for table in (CALLED_BY_NAME, FOR_TESTS)
        for prefix, names in table.items()
    )


def is_judged(item: core.Item) -> bool:
    return item.typ in KINDS or (item.typ == "variable" and item.name.isupper())


def unused(judged: Sequence[str], callers: Sequence[str]) -> Iterator[str]:
    scan = vulture.Vulture(ignore_decorators=REGISTERED)
    folders = [str(ROOT / folder) for folder in (*judged, *callers)]
    scan.scavenge(folders, exclude=[str(ROOT / "driver/pb/*")])
    for item in scan.get_unused_code(min_confidence=60):
        path = Path(item.filename).relative_to(ROOT).as_posix()
        if path.startswith(tuple(judged)) and is_judged(item) and not is_allowed(path, item.name):
            yield f"{path}:{item.first_lineno} {item.typ} {item.name}"


def test_nothing_of_the_product_is_unused_or_used_by_tests_alone() -> None:
    assert list(unused(PRODUCT, TOOLS)) == []


def test_nothing_of_the_tools_is_unused() -> None:
    assert list(unused(TOOLS, ("tests",))) == []


@pytest.mark.parametrize("table", [CALLED_BY_NAME, FOR_TESTS])
def test_every_exception_names_a_path_that_exists(table: dict[str, set[str]]) -> None:
    assert [path for path in table if not (ROOT / path).exists()] == []
