"""`python -m driver.mps`: parse the flags, build, run."""

import os
import secrets
import sys
from collections.abc import Sequence

from driver.runtime import program_start

# isort: split
from driver import clock, errors
from driver.mps import app
from driver.mps.config import SupervisorConfig
from driver.runtime import logs


def main(arguments: Sequence[str]) -> int:
    """Run the supervisor; return the exit code."""
    program_start.finish_imports()
    try:
        config = SupervisorConfig.read(arguments)
        logs.configure(config.log_level)
        return app.App(config, secrets.SystemRandom().random, clock.SystemClock()).run()
    except errors.RationError as error:
        sys.stderr.write(f"{app.COMPONENT}: {error}\n")
        return 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stderr.flush()
    # Everything has been stopped in order; the daemons are children that outlive us.
    os._exit(code)
