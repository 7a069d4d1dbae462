"""kubectl with the administrator's rights, and waiting for what it shows."""

import os
import time
from collections.abc import Callable
from pathlib import Path

from hack.cluster import errors, layout, shell

_PAUSE_S = 0.2


def run(where: layout.Layout, *args: str, standard_input: str | None = None) -> str:
    """What kubectl printed."""
    command = (str(where.program("kubectl")), f"--kubeconfig={where.kubeconfig}", *args)
    return shell.run(
        command, standard_input=standard_input, env={**os.environ, "HOME": str(where.home)}
    )


def wait(what: str, check: Callable[[], bool], seconds: float, log: Path | None = None) -> None:
    """Ask until the answer is yes; a refused question counts as no."""
    limit = time.monotonic() + seconds
    detail = ""
    while True:
        try:
            if check():
                return
        except errors.CommandFailedError as error:
            detail = error.output
        if time.monotonic() > limit:
            if log is not None and log.exists():
                last = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
                detail = f"{detail}\nthe end of {log}:\n{last}"
            raise errors.NotInTimeError(what, seconds, detail)
        time.sleep(_PAUSE_S)
