"""What the controller's caches weigh, and how long they take to fill: each in a process of its own.

`python -m benchmarks.allocator.memory static|mig` fills the stores as the reflectors do, from pages
of JSON, and the picture from the stores; then it prints one line of JSON.
"""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import calibrators, record
from benchmarks.allocator import cases, fixtures, reference
from driver import names
from driver.controller.informers import snapshot_updater, stores
from driver.kube import store
from driver.kube.http import json_decode
from driver.resources.bulk import slice_decoder
from driver.resources.core import nodes, pods
from driver.resources.dra import claims, device_classes
from driver.runtime import gc_tuning
from driver.scheduling.gangs import index as gang_index
from driver.scheduling.snapshot import cluster_state
from tests.fakes import packaged

PAGE = 500
CLAIMS = 20_000
STARTS = 2
STATIC = cases.Case("static", 5_000, fixtures.gpus(), fixtures.whole, 1, 1)
MIG = cases.Case(
    "mig", 1_000, fixtures.instance("1g.10gb"), fixtures.every_face, 1, 1, takes="1g.10gb"
)
ROOT = Path(__file__).parents[2]


class _Filled(NamedTuple):
    """MiB, seconds and counts by name, and the calibrators between the pages of slices."""

    values: Mapping[str, float]
    loops: Sequence[Mapping[str, float]]


def measure(other: reference.Reference) -> list[record.Figure]:
    """RSS of ours beside the reference's, and the processor time from bytes to the picture."""
    figures: list[record.Figure] = []
    for case, name, slices_of in (
        (STATIC, f"RSS, 5,000 nodes x 8 GPUs, {CLAIMS:,} claims", "5,000 nodes x 8 GPUs"),
        (MIG, "RSS, 1,000 nodes x 8 GPUs, every face", "1,000 nodes, every face"),
    ):
        starts = [_alone(case.name) for _ in range(STARTS)]
        filled = [start.values for start in starts]
        loops = record.Calibrations([loop for start in starts for loop in start.loops])
        other.load(case)
        theirs = other.rss_mib()
        figures += [
            record.figure(
                name, "MiB", [values["rss"] for values in filled], [theirs], seed=cases.SEED
            ),
            loops.add_to(
                record.figure(
                    f"slices of {slices_of}, JSON to picture",
                    "s",
                    [values["ingest"] for values in filled],
                    seed=cases.SEED,
                )
            ),
        ]
        if case is STATIC:
            figures += _each(filled)
    return figures


def _each(filled: Sequence[Mapping[str, float]]) -> list[record.Figure]:
    """Return the memory of a thousand slices, and of a thousand claims with their pods."""
    slices = [1000 * (values["filled"] - values["empty"]) / values["slices"] for values in filled]
    claims = [1000 * (values["rss"] - values["filled"]) / CLAIMS for values in filled]
    return [
        record.figure("memory of 1,000 slices of 8 GPUs", "MiB", slices, seed=cases.SEED),
        record.figure("memory of 1,000 claims with pods", "MiB", claims, seed=cases.SEED),
    ]


def _alone(name: str) -> _Filled:
    command = [sys.executable, "-m", "benchmarks.allocator.memory", name]
    around = packaged.environment()
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, env=around)
    return _Filled(**json.loads(done.stdout))


class _Filling:
    """The stores, the feed and the picture, as the controller wires them."""

    def __init__(self) -> None:
        self._stores = stores.empty()
        self._picture = cluster_state.ClusterState(names.DRIVER)
        self._feed = snapshot_updater.SnapshotUpdater(
            self._stores, self._picture, gang_index.GangIndex()
        )
        self.seconds = 0.0
        self.bytes = 0
        self.loops: list[Mapping[str, float]] = []

    def fill(self, case: cases.Case) -> int:
        """Everything of a case; how many slices."""
        stores = self._stores
        self._take(stores.classes, device_classes.parse, iter([fixtures.classes()]))
        every = [fixtures.node(number) for number in range(case.nodes)]
        self._take(stores.nodes, nodes.parse, iter([every]))
        self.seconds, self.bytes = 0.0, 0
        pages = _calibrated(_pages_of_slices(case), self.loops)
        self._take(stores.slices, slice_decoder.parse, pages, slice_decoder.decode)
        self._bring()
        for number in range(case.nodes):
            self._picture.reachable_pools(fixtures.node_name(number))  # type: ignore[arg-type]
        return len(stores.slices)

    def fill_claims(self, case: cases.Case) -> None:
        """A claim a device in use, each with a pod."""
        spread = self.seconds, self.bytes
        self._take(self._stores.claims, claims.parse, _pages(_claims(case), PAGE))
        self._take(self._stores.pods, pods.parse, _pages(_pods(case), PAGE))
        self._bring()
        self.seconds, self.bytes = spread

    def _take(
        self,
        into: store.Store[Any],
        parse: Callable[[Any], Any],
        pages: Iterator[list[fixtures.Raw]],
        decode: json_decode.Bulk | None = None,
    ) -> None:
        """As a reflector takes a listing: a page is bytes, then objects, then what we keep."""
        into.set_parser(parse, _unreadable)
        begun = time.process_time()
        into.replace(self._decoded(pages, decode), 1)
        self.seconds += time.process_time() - begun

    def _decoded(
        self, pages: Iterator[list[fixtures.Raw]], decode: json_decode.Bulk | None
    ) -> Iterator[fixtures.Raw]:
        begun = time.process_time()
        for page in pages:
            body = json.dumps({"items": page}, separators=(",", ":")).encode()
            self.bytes += len(body)
            page.clear()
            self.seconds -= time.process_time() - begun
            message: Any = json_decode.decode(body, decode)
            items = message["items"]
            del body
            items.reverse()
            while items:
                yield items.pop()
            begun = time.process_time()

    def _bring(self) -> None:
        begun = time.process_time()
        self._feed.apply()
        self.seconds += time.process_time() - begun


def _unreadable(key: object, error: Exception) -> None:
    raise RuntimeError(f"{key}: {error}")


def _calibrated(
    pages: Iterator[list[fixtures.Raw]], loops: list[Mapping[str, float]]
) -> Iterator[list[fixtures.Raw]]:
    """Yield the pages, the loop run before each: what it takes to make a page is not counted."""
    for page in pages:
        loops.append(calibrators.measure_loop())
        yield page


def _pages_of_slices(case: cases.Case) -> Iterator[list[fixtures.Raw]]:
    template = case.shape("controller")
    page: list[fixtures.Raw] = []
    for number in range(case.nodes):
        page += json.loads(fixtures.filled(template, number))
        if len(page) >= PAGE:
            yield page
            page = []
    yield page


def _pages(items: Iterator[fixtures.Raw], size: int) -> Iterator[list[fixtures.Raw]]:
    page: list[fixtures.Raw] = []
    for item in items:
        page.append(item)
        if len(page) >= size:
            yield page
            page = []
    yield page


def _claims(case: cases.Case) -> Iterator[fixtures.Raw]:
    for number, device in enumerate(case.taken):
        raw = fixtures.claim(f"claim-{number}", case.asks)
        yield fixtures.allocated(raw, device, device[1])


def _pods(case: cases.Case) -> Iterator[fixtures.Raw]:
    for number, device in enumerate(case.taken):
        raw = fixtures.pod(f"pod-{number}", f"claim-{number}")
        raw["spec"]["nodeName"] = device[1]
        yield {**raw, "status": {"phase": "Running"}}


def _rss_mib() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    line = next(row for row in status if row.startswith("VmRSS:"))
    return int(line.split()[1]) / 1024


def main() -> int:
    """Measure the case that is named."""
    gc_tuning.set_thresholds()
    case = {measured.name: measured for measured in (STATIC, MIG)}[sys.argv[1]]
    empty = _rss_mib()
    filling = _Filling()
    count = filling.fill(case)
    gc.collect()
    filled = _rss_mib()
    if case is STATIC:
        filling.fill_claims(case)
        gc.collect()
    values = {
        "slices": count,
        "empty": empty,
        "filled": filled,
        "rss": _rss_mib(),
        "ingest": filling.seconds,
        "megabytes": filling.bytes / 1e6,
    }
    print(json.dumps({"values": values, "loops": filling.loops}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
