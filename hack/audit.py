"""Asks PyPI what is known to be wrong with the releases that the locks pin.

    python -m hack.audit

Each release is asked for by itself; where an index in between does not have that page, the
project's own is asked, which tells of its newest release alone: an older pin is then named as not
told of. Nothing beside Python is asked for: not the base image, not Go's modules of the tests.
Exit code 0: nothing is known; 1: something is, and what; 3: nobody answered.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from packaging.utils import canonicalize_name
from pip._internal.models import index  # where PyPI is, as pip knows it

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
_PAGE = f"{index.PyPI.url}pypi/{{name}}/json"
_RELEASE = f"{index.PyPI.url}pypi/{{name}}/{{version}}/json"
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
_AT_ONCE = 8
_OK, _NOT_FOUND = 200, 404
SILENT = "not told of"
Pin = tuple[str, str]
"""Name and version."""


class Unanswered(Exception):
    """PyPI was not reached, or said what makes no sense."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one pin: what is known, as lines; None where nobody tells of that release."""

    pin: Pin
    known: tuple[str, ...] | None


def pins(folder: Path = REQUIREMENTS, pattern: str = "*.lock") -> list[Pin]:
    """Of all locks together, each once."""
    texts = [path.read_text() for path in sorted(folder.glob(pattern))]
    found = {
        (canonicalize_name(name), version) for one in texts for name, version in _PIN.findall(one)
    }
    return sorted(found)


def judge(pin: Pin, release: Mapping[str, Any] | None, page: Mapping[str, Any] | None) -> Verdict:
    """What the release's own page says, else the project's, if the pin is its newest release."""
    if release is None and page is not None and page["info"]["version"] == pin[1]:
        release = page
    if release is None:
        return Verdict(pin, None)
    return Verdict(pin, tuple(map(_told, release.get("vulnerabilities") or ())))


def _told(one: Mapping[str, Any]) -> str:
    mended = ", ".join(one.get("fixed_in") or ()) or "nowhere yet"
    names = ", ".join([str(one["id"]), *(one.get("aliases") or ())])
    return f"{names}: {one.get('summary') or 'no summary'}; mended in {mended}"


def ask(http: urllib3.PoolManager, pin: Pin) -> Verdict:
    """One pin. Raises Unanswered."""
    release = _json(http, _RELEASE.format(name=pin[0], version=pin[1]))
    page = _json(http, _PAGE.format(name=pin[0])) if release is None else None
    return judge(pin, release, page)


def _json(http: urllib3.PoolManager, url: str) -> Mapping[str, Any] | None:
    try:
        answer = http.request("GET", url, timeout=30)
        found = answer.json() if answer.status == _OK else None
    except (urllib3.exceptions.HTTPError, ValueError) as error:
        raise Unanswered(f"{url}: {error}") from error
    if answer.status not in {_OK, _NOT_FOUND}:
        raise Unanswered(f"{url}: HTTP {answer.status}")
    return found


def lines(verdicts: list[Verdict]) -> Iterator[str]:
    """For people."""
    silent = [f"{name} {version}" for (name, version), known in _parts(verdicts) if known is None]
    for (name, version), known in _parts(verdicts):
        yield from (f"{name} {version}: {one}" for one in known or ())
    if silent:
        yield f"{SILENT}, as they are not the newest: {', '.join(silent)}"
    bad = sum(bool(one.known) for one in verdicts)
    yield f"{len(verdicts)} releases are pinned; of {bad} something is known"


def _parts(verdicts: list[Verdict]) -> Iterator[tuple[Pin, tuple[str, ...] | None]]:
    return ((one.pin, one.known) for one in verdicts)


def ask_all(releases: Sequence[Pin]) -> list[Verdict]:
    """Ask of each pin. Raises Unanswered."""
    http = urllib3.PoolManager(maxsize=_AT_ONCE)
    with futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda pin: ask(http, pin), releases))


def main() -> int:
    """Ask of every pin, and tell."""
    try:
        verdicts = ask_all(pins())
    except Unanswered as error:
        sys.stderr.write(f"not audited: {error}\n")
        return 3
    sys.stdout.writelines(f"{one}\n" for one in lines(verdicts))
    return 1 if any(one.known for one in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
