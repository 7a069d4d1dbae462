"""Measure what must hold under load: `python -m benchmarks.hold`, without the local cluster.

A real API server with its etcd is started for each part, and ended. The plugin and the controllers
are processes with the rights that the chart gives them; the kubelet is played, pods and nodes of
the fleet are API objects. A quarter of an hour, most of which the plugin is left alone.
"""

import argparse

from benchmarks import record
from benchmarks.hold import controllers, plugin

IDLE_S, QUICK_IDLE_S = 600.0, 20.0


def main() -> None:
    """Measure, print, store."""
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument(
        "--idle-seconds", type=float, default=IDLE_S, help="how long the plugin is left alone"
    )
    made.add_argument("--quick", action="store_true", help="twenty idle seconds; nothing is stored")
    chosen = made.parse_args()
    idle_s = QUICK_IDLE_S if chosen.quick else chosen.idle_seconds
    figures = [*plugin.measure(idle_s), *controllers.measure()]
    if chosen.quick:
        print(*map(record.line, figures), sep="\n")
    else:
        record.write("hold", figures)


if __name__ == "__main__":
    main()
