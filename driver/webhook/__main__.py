"""`python -m driver.webhook`: parse the flags once, wire, run."""

import secrets
import socket
import sys
import uuid
from collections.abc import Sequence

from driver.runtime import program_start

# isort: split
from driver import errors
from driver.kube import client
from driver.runtime import logs
from driver.webhook import app
from driver.webhook.config import AdmissionConfig


def main(arguments: Sequence[str]) -> int:
    """Run the webhook; the exit code."""
    program_start.finish_imports()
    try:
        config = AdmissionConfig.read(arguments)
        logs.configure(config.log_level)
        kube = client.KubeClient.connect(config.kubeconfig, "ration-admission")
        # The name in the Lease must be new in every process.
        name = config.identity or socket.gethostname()
        identity = f"{name}-{uuid.uuid4().hex[:8]}"  # noqa: TID251 - composition root
        return app.App(config, kube, identity, secrets.SystemRandom().random).run()
    except errors.RationError as error:
        sys.stderr.write(f"ration-admission: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
