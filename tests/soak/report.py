"""Report of a run: messages, figures, and whether it passed."""

from dataclasses import dataclass
from typing import Self

from benchmarks import record
from tests.soak import ledger, run, verdict


@dataclass(frozen=True, slots=True)
class Report:
    """Report of one run."""

    book: ledger.Ledger
    asked: run.Asked
    server: str
    growths: tuple[verdict.Growth, ...]
    seconds: float

    @classmethod
    def of(cls, item: run.Run, request: run.Asked) -> Self:
        """Judge what was sampled."""
        return cls(
            item.book, request, item.server, tuple(item.sampler.growths()), item.book.elapsed_s
        )

    @property
    def good(self) -> bool:
        """Nothing lost, nothing left over, and nothing that grows."""
        return not self.book.broken and not verdict.any_grows(self.growths)

    @property
    def text(self) -> str:
        """Return it as text for people."""
        book = self.book
        lines = [
            f"\nseed {self.asked.seed}, {self.seconds:.0f} s, {self.server}",
            f"cycles: {dict(book.stages)}, lost {book.lost()}; faces: {dict(book.faces)}",
            f"troubles: {dict(book.troubles)}",
            f"longest wait for a Prepare: {book.longest_s:.1f} s",
            "calls that were made again:",
            *(f"  {count:5} {why}" for why, count in book.refused.most_common(20)),
            *(growth.text for growth in self.growths),
            *(f"BROKEN: {name}" for name in book.broken),
            "good" if self.good else "NOT GOOD",
        ]
        return "\n".join(lines)

    def figures(self) -> list[record.Figure]:
        """Return the figures in the form of every suite."""
        book, seed = self.book, self.asked.seed
        location = "stand-in API server" if "stand-in" in self.server else "real API server"
        kills = sum(book.troubles[entry] for entry in ("plugin killed", "supervisor killed"))
        rate = book.done / self.seconds
        plain = [
            record.figure(f"claim cycles, {location}", "", [book.done], seed=seed),
            record.figure("claim cycles a second", "/s", [rate], seed=seed),
            record.figure("claims lost", "", [book.lost()], seed=seed),
            record.figure("breaches", "", [len(book.broken)], seed=seed),
            record.figure("troubles", "", [book.troubles.total()], seed=seed),
            record.figure("kills among them", "", [kills], seed=seed),
            record.figure(
                "longest wait for Prepare, troubles included", "s", [book.longest_s], seed=seed
            ),
        ]
        return [*plain, *(figure(growth, seed) for growth in self.growths)]


def figure(growth: verdict.Growth, seed: int) -> record.Figure:
    """Return the figure of a growth."""
    return record.Figure(
        f"{growth.name}, grown",
        growth.unit,
        round(growth.grown, 3),
        spread=f"in {growth.cycles} cycles, error {growth.error:.3f}, allowed "
        f"{growth.allowed:.2f}; {growth.seen[0]:.1f}-{growth.seen[1]:.1f}, n={growth.samples}",
        seed=seed,
        commit=record.commit(),
        says=growth.says.value,
    )
