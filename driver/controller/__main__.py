"""`python -m driver.controller`: parse the flags once, wire, run."""

import os
import secrets
import socket
import sys
import uuid
from collections.abc import Sequence

from driver.runtime import program_start

# isort: split
from driver import errors
from driver.controller import app
from driver.controller.config import ControllerConfig
from driver.kube import client
from driver.runtime import gc_tuning, logs


def main(arguments: Sequence[str]) -> int:
    """Run the controller; the exit code."""
    program_start.finish_imports()
    try:
        config = ControllerConfig.read(arguments)
        logs.configure(config.log_level)
        gc_tuning.set_thresholds()
        kube = client.KubeClient.connect(config.kubeconfig, "ration-controller")
        # Half of the fencing token, so it must be new in every process (D22).
        name = config.identity or socket.gethostname()
        identity = f"{name}-{uuid.uuid4().hex[:8]}"  # noqa: TID251 - composition root
        return app.build(config, kube, identity, secrets.SystemRandom().random, _die).run()
    except errors.RationError as error:
        sys.stderr.write(f"ration-controller: {error}\n")
        return 1


def _die() -> None:
    """A leader that lost its Lease stops at once: nothing it still does may be written."""
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
