"""Targets of fuzzing: each decoder ends in a value or a typed error.

A target takes any bytes. It raises nothing of its own but AssertionError, so whatever else comes
out of it is a fault; so is taking longer than `bound_s` of the processor's time.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.fuzz import seeds
from tests.fuzz.judging import configs, documents, files, kept, objects, reviews, selectors

Check = Callable[[bytes], None]


@dataclass(frozen=True, slots=True)
class Target:
    """`seeds` are inputs that are right, or nearly; at most `most` bytes of one are tried."""

    check: Check
    seeds: Callable[[], Sequence[bytes]]
    bound_s: float = 1.0
    most: int = 16 << 10

    def hold(self, data: bytes, slower: float = 1.0) -> None:
        """Raises AssertionError or whatever escaped; `slower`: how often the bound is granted."""
        began = time.process_time()
        self.check(data[: self.most])
        took_s = time.process_time() - began
        assert took_s <= self.bound_s * slower, (
            f"took {took_s:.2f} s, and may take {self.bound_s} s"
        )


TARGETS = {
    "configs": Target(configs.check, seeds.configs),
    "node-shapes": Target(documents.shapes, seeds.shapes, bound_s=2.0),
    "usual-workloads": Target(documents.workloads_of, seeds.workloads, bound_s=2.0),
    "managed-drivers": Target(documents.drivers, seeds.drivers, bound_s=2.0),
    "node-offerings": Target(documents.offerings, seeds.offerings, bound_s=2.0),
    "records": Target(files.record, seeds.records),
    "cdi": Target(files.spec, seeds.specs),
    "mps": Target(files.mps_files, seeds.mps_files),
    "quantities": Target(selectors.quantities, seeds.quantities, most=200),
    "selectors": Target(selectors.selectors, seeds.selectors, bound_s=2.0, most=10 << 10),
    "objects": Target(objects.check, seeds.objects),
    "reviews": Target(reviews.check, seeds.reviews),
    "shapes-seen": Target(kept.check, seeds.seen, bound_s=2.0),
}
