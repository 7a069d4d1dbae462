"""Looks for secrets in all that the history ever added, and in what is not committed yet.

    python -m hack.leaks

Keys, tokens and passwords in addresses, by the forms that detect-secrets knows; entropy is not
judged, for this repository is full of digests. Exit code 1: something was found, and where.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from detect_secrets.core import scan
from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
from detect_secrets.settings import transient_settings

ROOT = Path(__file__).parents[1]
_JUDGES_LOOKS = {"Base64HighEntropyString", "HexHighEntropyString", "KeywordDetector"}
_NOT_HERE = {"IPPublicDetector"}
KNOWN = {("Basic Auth Credentials", "pass")}
"""What is none: addresses of the tests of selectors hold `user:pass`."""


def added() -> Iterator[str]:
    """Each line once that a commit, or the working tree, has added."""
    lines: set[str] = set()
    for command in (
        ["git", "log", "-p", "-U0", "--no-color", "--no-ext-diff"],
        ["git", "diff", "-U0", "--no-color", "--no-ext-diff", "HEAD"],
    ):
        told = subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout
        text = told.decode(errors="replace")
        lines.update(line[1:] for line in text.splitlines() if line.startswith("+"))
    yield from sorted(lines)


def detectors() -> list[dict[str, str]]:
    """All of detect-secrets' that know a form."""
    classes: Iterable[type] = get_mapping_from_secret_type_to_class().values()
    known = {one.__name__ for one in classes}
    return [{"name": one} for one in sorted(known - _JUDGES_LOOKS - _NOT_HERE)]


def found(lines: Iterator[str]) -> Iterator[tuple[str, str]]:
    """What each secret is, and the line that holds it."""
    settings = {"plugins_used": detectors(), "filters_used": list[dict[str, str]]()}
    with transient_settings(settings):
        told = ((secret, line) for line in lines for secret in scan.scan_line(line))
        yield from (
            (secret.type, line)
            for secret, line in told
            if (secret.type, secret.secret_value) not in KNOWN
        )


def main() -> int:
    """0: nothing was found."""
    leaks = list(found(added()))
    for what, line in leaks:
        print(f"{what}: {line.strip()[:60]}...   (git log -S finds the commit)")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
