"""`python -m driver.kubeletplugin`: parse the flags, build, run."""

import os
import secrets
import sys
from collections.abc import Sequence

from driver.runtime import program_start

# isort: split
from driver import clock, errors
from driver.kube import client
from driver.kubeletplugin import app, composition, process_parts
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.records import claims_api
from driver.runtime import logs


def main(arguments: Sequence[str]) -> int:
    """Run the plugin; return the exit code."""
    program_start.finish_imports()
    try:
        config = PluginConfig.read(arguments)
        logs.configure(config.log_level)
        time = clock.SystemClock()
        kube = client.KubeClient.connect(config.kubeconfig, process_parts.COMPONENT)
        core = composition.build_core(config, claims_api.KubeClaimReader(kube), time)
        outside = process_parts.ProcessDeps(kube, secrets.SystemRandom().random, time)
        return app.build(config, core, outside).run()
    except errors.RationError as error:
        sys.stderr.write(f"{process_parts.COMPONENT}: {error}\n")
        return 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Everything has been stopped in order; work that ignored it must not keep the process alive.
    os._exit(code)
