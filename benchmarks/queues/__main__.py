"""`python -m benchmarks.queues`: whose turn it is, and how long that takes.

`fairness`: a trace by our order beside others. What other modules of the package measure
(`MODULES`) is measured where they are there.
"""

import argparse
import functools
import importlib
import importlib.util
import sys

from benchmarks import record
from driver.runtime import gc_tuning

MODULES = ("fairness", "gangs", "plans")


def main() -> int:
    """Measure, print; store where all was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", choices=(*MODULES, []), help="all, if none is named")
    parser.add_argument("--quick", action="store_true", help="less of it; nothing is stored")
    options = parser.parse_args()
    start = record.Start()
    gc_tuning.set_thresholds()  # as the controller
    figures: list[record.Figure] = []
    for name in options.modules or MODULES:
        path = f"{__package__}.{name}"
        if importlib.util.find_spec(path) is not None:
            measure = importlib.import_module(path).run
            figures += record.parts(functools.partial(measure, quick=options.quick))
    if options.quick or options.modules:
        print(*map(record.line, figures), sep="\n")
    else:
        record.write("queues", figures, start)
    return 0


if __name__ == "__main__":
    sys.exit(main())
