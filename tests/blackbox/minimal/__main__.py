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
    options = parser().parse_args()
    server = api.Server(options.kubeconfig, options.driver_name, options.node_name)
    return run(
        options, server, state.State(options.state_dir, options.cdi_root, options.driver_name)
    )


def run(options: argparse.Namespace, server: api.Server, retained: state.State) -> int:
    """Exit code 0 after SIGTERM, 1 when it could not serve."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    names = [f"{options.device_prefix}-{number}" for number in range(options.devices)]
    try:
        retained.repair()
        serving = plugin.Plugin(options.kubelet_root, options.driver_name, server, retained)
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
    argument_parser = argparse.ArgumentParser(prog="python -m tests.blackbox.minimal")
    argument_parser.add_argument("--driver-name", default="minimal.example.com")
    argument_parser.add_argument("--node-name", required=True)
    argument_parser.add_argument("--kubeconfig", type=Path, required=True)
    argument_parser.add_argument("--kubelet-root", type=Path, required=True)
    argument_parser.add_argument("--cdi-root", type=Path, required=True)
    argument_parser.add_argument("--state-dir", type=Path, required=True)
    argument_parser.add_argument("--devices", type=int, default=8)
    argument_parser.add_argument("--device-prefix", default="thing")
    return argument_parser


if __name__ == "__main__":
    sys.exit(main())
