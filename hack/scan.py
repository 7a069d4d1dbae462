"""Scans an image's archive: `python -m hack.scan ARCHIVE`.

Its files are judged by themselves (`hack.image.scan`), its Python packages by what PyPI knows to be
wrong with them, and Debian's packages in it by whether their release has newer ones: that is how
Debian mends what is known to be wrong with a release. What could not be asked is said in a line.
Exit code 0: nothing is wrong; 1: something is, and what; 3: nothing is, but not all could be asked.
"""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from hack import audit, debian
from hack.cluster import errors
from hack.image import archive, build, scan

LOCK = build.CHECKOUT / build.LOCK
app = typer.Typer(help=__doc__, add_completion=False)


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a scan: faults, answers that name none, and questions that nobody answered."""

    problems: tuple[str, ...]
    answers: tuple[str, ...]
    unasked: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Write it for people."""
        yield from self.problems
        yield from self.answers
        yield from (f"not asked: {line}" for line in self.unasked)


def scan_files(image: Path) -> Report:
    """Judge the files of an image by themselves."""
    problems = scan.problems(image, LOCK.read_text())
    return Report(tuple(problems), (f"{len(problems)} problems of files",), ())


def scan_python_packages() -> Report:
    """Ask PyPI what is known to be wrong with the Python packages that the image's lock pins."""
    try:
        verdicts = audit.ask_all(audit.pins(pattern=LOCK.name))
    except audit.Unanswered as error:
        return Report((), (), (f"what PyPI knows of the Python packages: {error}",))
    silent = ", ".join(" ".join(each.pin) for each in verdicts if each.known is None)
    *problems, summary = [
        line for line in audit.lines(verdicts) if not line.startswith(audit.SILENT)
    ]
    unasked = (f"PyPI, of releases that are not their newest: {silent}",) if silent else ()
    return Report(tuple(problems), (f"Python packages: {summary}",), unasked)


def scan_system_packages(image: Path) -> Report:
    """Ask Debian's archive for newer versions of its packages that the image has."""
    try:
        with tempfile.TemporaryDirectory(prefix="ration-debian-") as work:
            present, release = system_packages(image)
            newest = debian.Archive(release, Path(work)).newest(sorted(present))
    except errors.ClusterError as error:
        return Report((), (), (f"whether Debian has newer packages: {error}",))
    return Report(
        tuple(outdated(present, newest)),
        (f"Debian packages: {len(present)}, of which {len(newest)} are in {release.suite}",),
        (),
    )


def system_packages(image: Path) -> tuple[dict[str, str], debian.Release]:
    """Read Debian's packages in an image, name and version, and the release that they are of.

    Raises ClusterError where the image does not say.
    """
    with archive.layer(image) as files:
        texts = {
            member.name: (file.read().decode() if (file := files.extractfile(member)) else "")
            for member in files.getmembers()
            if member.name == str(debian.RELEASE) or member.name.startswith(f"{debian.RECORDS}/")
        }
    system = fields(texts.pop(str(debian.RELEASE), ""), "=")
    if not texts or system.get("ID") != "debian":
        raise errors.ClusterError("the image names no packages of Debian")
    records = [fields(text, ": ") for text in texts.values()]
    versions = {record["Package"]: record["Version"] for record in records}
    architecture = str(archive.config(image)["architecture"])
    return versions, debian.Release(system["VERSION_CODENAME"], architecture)


def fields(text: str, separator: str) -> dict[str, str]:
    """Read lines of a name and a value each."""
    rows = (line.partition(separator) for line in text.splitlines())
    return {name: value.strip('"') for name, _, value in rows}


def outdated(present: Mapping[str, str], newest: Mapping[str, str]) -> Iterator[str]:
    """Name the packages that have a newer version."""
    for name, version in present.items():
        if name in newest and debian.is_older(version, newest[name]):
            yield f"{name} {version}: Debian has {newest[name]}"


@app.command()
def main(image: Annotated[Path, typer.Argument(help="an OCI archive, of hack.image")]) -> None:
    """Scan an image's archive."""
    reports = [scan_files(image), scan_python_packages(), scan_system_packages(image)]
    for report in reports:
        sys.stdout.writelines(f"{line}\n" for line in report.lines())
    if any(report.problems for report in reports):
        raise typer.Exit(1)
    if any(report.unasked for report in reports):
        raise typer.Exit(3)


if __name__ == "__main__":
    app()
