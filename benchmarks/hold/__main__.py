"""Measure what must hold under load: `python -m benchmarks.hold`, without the local cluster.

A real API server with its etcd is started for each part, and ended. The plugin and the controllers
are processes with the rights that the chart gives them; the kubelet is played, pods and nodes of
the fleet are API objects. Six minutes. The controllers and a plugin that works are measured while
another is idle, which is alone only as long as its CPU is measured.
"""

import argparse

from benchmarks import record
from benchmarks.hold import controllers, plugin

IDLE_S, QUICK_IDLE_S = 310.0, 20.0


def main() -> None:
    """Measure, print, store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--idle-seconds", type=float, default=IDLE_S, help="how long the plugin is idle at least"
    )
    parser.add_argument(
        "--quick", action="store_true", help="fewer idle seconds; nothing is stored"
    )
    options = parser.parse_args()
    start = record.Start()
    idle_s = QUICK_IDLE_S if options.quick else options.idle_seconds
    figures = plugin.rest(idle_s, lambda: [*controllers.measure(), *plugin.work()])
    if options.quick:
        print(*map(record.line, figures), sep="\n")
    else:
        record.write("hold", figures, start)


if __name__ == "__main__":
    main()
