"""Measure what must hold under load: `python -m benchmarks.hold`, without the local cluster.

A real API server with its etcd is started for each part, and ended. The plugin and the controllers
are processes with the rights that the chart gives them; the kubelet is played, pods and nodes of
the fleet are API objects. A quarter of an hour, most of which the plugin is left alone.
"""

import argparse

from benchmarks import record
from benchmarks.hold import controllers, plugin

IDLE_S = 600.0


def main() -> None:
    """Measure, print, store."""
    made = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    made.add_argument(
        "--idle-seconds", type=float, default=IDLE_S, help="how long the plugin is left alone"
    )
    chosen = made.parse_args()
    record.write("hold", [*plugin.measure(chosen.idle_seconds), *controllers.measure()])


if __name__ == "__main__":
    main()
