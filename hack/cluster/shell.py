"""Programs run to their end."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.cluster import errors


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    standard_input: str | None = None,
    timeout: float | None = None,
    ends: Sequence[int] = (0,),
) -> str:
    """What a program wrote to its standard output; CommandFailedError if it ended otherwise."""
    try:
        done = subprocess.run(
            argv,
            check=False,
            capture_output=True,
            text=True,
            cwd=cwd,
            env=env,
            input=standard_input,
            timeout=timeout,
        )
    except FileNotFoundError as error:
        raise errors.CommandFailedError(tuple(argv), 127, str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise errors.NotInTimeError(" ".join(argv), error.timeout) from error
    if done.returncode not in ends:
        raise errors.CommandFailedError(tuple(argv), done.returncode, done.stderr or done.stdout)
    return done.stdout
