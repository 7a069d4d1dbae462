"""The account of a run: faults and recoveries by kind, breaches, and what was seen on the way."""

import collections
import statistics
from dataclasses import dataclass, field

from benchmarks import record
from tests.chaos import draw


@dataclass(frozen=True, slots=True)
class Broken:
    """A breach: after which fault, and what."""

    fault: draw.Fault | None
    words: str

    @property
    def text(self) -> str:
        """Return it as text for people."""
        if self.fault is None:
            return self.words
        return f"fault {self.fault.number} ({self.fault.kind}): {self.words}"


@dataclass
class Book:
    """`errors` are those that our processes logged within a fault, `calm` those beside one."""

    seed: int
    recoveries: dict[draw.Kind, list[float]] = field(default_factory=dict)
    broken: list[Broken] = field(default_factory=list)
    skipped: collections.Counter[str] = field(default_factory=collections.Counter)
    revived: collections.Counter[str] = field(default_factory=collections.Counter)
    errors: collections.Counter[str] = field(default_factory=collections.Counter)
    calm: collections.Counter[str] = field(default_factory=collections.Counter)
    prepared: set[str] = field(default_factory=set)
    history: collections.Counter[str] = field(default_factory=collections.Counter)
    cut: collections.Counter[str] = field(default_factory=collections.Counter)
    overlaps: int = 0
    pods: int = 0
    works: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    def recovered(self, kind: draw.Kind, seconds: float) -> None:
        """A fault was over, and so long afterwards the world was as it should be."""
        self.recoveries.setdefault(kind, []).append(seconds)

    @property
    def faults(self) -> int:
        """Return how many were done."""
        return sum(len(recovery) for recovery in self.recoveries.values())

    @property
    def good(self) -> bool:
        """Nothing was broken."""
        return not self.broken

    def text(self) -> str:
        """Return it as text for people."""
        lines = [
            f"\nseed {self.seed}: {self.faults} faults in {self.seconds:.0f} s",
            f"{self.pods} pods, {len(self.prepared)} claims prepared",
            f"works: {self.works}",
            f"history of claims: {dict(self.history)}",
            *(
                f"  {kind:26} {len(took):3}  median {statistics.median(took):5.1f} s  "
                f"longest {max(took):5.1f} s"
                for kind, took in sorted(self.recoveries.items())
            ),
            f"could not be done: {dict(self.skipped)}",
            f"started again by themselves: {dict(self.revived)}",
            f"connections that broke without a plan: {dict(self.cut.most_common(6))}",
            f"errors logged within faults: {dict(self.errors.most_common(12))}",
            f"errors logged beside faults: {dict(self.calm.most_common(12))}",
            *(f"BROKEN: {broken.text}" for broken in self.broken),
            "good" if self.good else f"NOT GOOD: {len(self.broken)} breaches",
        ]
        return "\n".join(lines)

    def figures(self) -> list[record.Figure]:
        """Return the figures in the form of every suite."""
        seed = self.seed
        per_s = len(self.prepared) / self.seconds if self.seconds else 0.0
        total = [
            record.figure("faults", "", [self.faults], seed=seed),
            record.figure("breaches", "", [len(self.broken)], seed=seed),
            record.figure("hardware in two claims", "", [self.overlaps], seed=seed),
            record.figure("pods", "", [self.pods], seed=seed),
            record.figure("claims prepared", "", [len(self.prepared)], seed=seed),
            record.figure("claims prepared a second", "/s", [per_s], seed=seed),
            record.figure("seconds in all", "s", [self.seconds], seed=seed),
        ]
        return [*total, *(self._recovery(kind) for kind in sorted(self.recoveries))]

    def _recovery(self, kind: draw.Kind) -> record.Figure:
        """The longest is what counts; the median stands in its spread."""
        took = self.recoveries[kind]
        median = statistics.median(took)
        return record.Figure(
            f"longest recovery from {kind}",
            "s",
            round(max(took), 2),
            spread=f"{min(took):.2f}-{max(took):.2f}, median {median:.2f}, n={len(took)}",
            seed=self.seed,
            commit=record.commit(),
        )
