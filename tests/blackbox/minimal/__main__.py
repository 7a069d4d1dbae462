"""`python -m tests.blackbox.minimal --node-name node-0 ...`: run the plugin until SIGTERM."""

import argparse
import logging
import signal
import sys
import threading
from pathlib import Path

from tests.blackbox.minimal import api, plugin, state

_REPAIR_S = 2.0
_log = logging.getLogger(__name__)


def main() -> int:
    """Read the flags and run."""
    given = parser().parse_args()
    server = api.Server(given.kubeconfig, given.driver_name, given.node_name)
    return run(given, server, state.State(given.state_dir, given.cdi_root, given.driver_name))


def run(given: argparse.Namespace, server: api.Server, kept: state.State) -> int:
    """Exit code 0 after SIGTERM, 1 when it could not serve."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    names = [f"{given.device_prefix}-{number}" for number in range(given.devices)]
    try:
        kept.repair()
        serving = plugin.Plugin(given.kubelet_root, given.driver_name, server, kept)
        serving.start()
    except OSError as e:
        _log.error("cannot serve: %s", e)
        return 1
    try:
        while not stop.is_set():
            server.publish(names)
            stop.wait(_REPAIR_S)
    finally:
        serving.stop()
    return 0


def parser() -> argparse.ArgumentParser:
    """Its flags."""
    made = argparse.ArgumentParser(prog="python -m tests.blackbox.minimal")
    made.add_argument("--driver-name", default="minimal.example.com")
    made.add_argument("--node-name", required=True)
    made.add_argument("--kubeconfig", type=Path, required=True)
    made.add_argument("--kubelet-root", type=Path, required=True)
    made.add_argument("--cdi-root", type=Path, required=True)
    made.add_argument("--state-dir", type=Path, required=True)
    made.add_argument("--devices", type=int, default=8)
    made.add_argument("--device-prefix", default="thing")
    return made


if __name__ == "__main__":
    sys.exit(main())
