"""Commands run from nothing, with their environment. Pure."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_OURS = re.compile(
    r"HOME|XDG_\w+|PYTHON\w+|PIP_CACHE_DIR|UV_(CACHE_DIR|PYTHON\w*|PROJECT\w*)|VIRTUAL_ENV"
    r"|GO(?!(PROXY|NOPROXY|SUMDB|NOSUMDB|PRIVATE|INSECURE|AUTH)$)\w+|MAKE\w*|MFLAGS|CI|K8S|RATION_\w+"
)
"""Variables that name a cache, a toolchain, or a wish of who started the lane."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command in the clone; `words` as for a shell.

    With `boots` it is about a cluster; what `clears` is run after a failure too.
    """

    name: str
    words: tuple[str, ...]
    boots: bool = False
    clears: bool = False

    @property
    def text(self) -> str:
        """To paste."""
        return " ".join(self.words)


STEPS = (
    Step("setup", ("make", "setup")),
    Step("programs", (".venv/bin/python", "-m", "hack.cluster", "build")),
    Step("demo", ("make", "demo"), boots=True),
    Step("test", ("make", "test"), boots=True),
    Step("demo-down", ("make", "demo-down"), boots=True, clears=True),
)
"""README's commands, the second while the demo is up; what the first begins with is timed alone."""


@dataclass(frozen=True, slots=True)
class Place:
    """Folders of the lane, below `root`."""

    root: Path

    @property
    def home(self) -> Path:
        """HOME, empty in the first round."""
        return self.root / "home"

    @property
    def toolchain(self) -> Path:
        """Return where a Go that is not the machine's own lies."""
        return self.root / "toolchain"

    def checkout(self, number: int) -> Path:
        """The clone of a round."""
        return self.root / f"checkout-{number}"

    def log(self, number: int, step: str) -> Path:
        """Return what a step of a round printed."""
        return self.root / "logs" / f"{number}-{step}.log"

    def caches(self) -> Mapping[str, Path]:
        """Folders that a run fills, by what is in them."""
        cache = self.home / ".cache"
        return {
            "Go modules": self.home / "go" / "pkg" / "mod",
            "Go builds": cache / "go-build",
            "Python packages": cache / "uv",
            "pip": cache / "pip",
            "ours": cache / "ration",
        }


def environment(environ: Mapping[str, str], position: Place, go: Path | None) -> dict[str, str]:
    """The environment of every step: of the caller's, what says how networks are reached.

    `go` is the folder with the `go` to take, None for the machine's own. It may fetch no other.
    """
    retained = {name: value for name, value in environ.items() if not _OURS.fullmatch(name)}
    path = environ.get("PATH", "")
    return retained | {
        "HOME": str(position.home),
        "GOTOOLCHAIN": "local",
        "PATH": path if go is None else f"{go}:{path}",
    }


def steps(*, boot: bool) -> tuple[Step, ...]:
    """All, or those that bring up no cluster."""
    return tuple(step for step in STEPS if boot or not step.boots)


def clone(source: Path, commit: str, into: Path) -> tuple[Sequence[str], ...]:
    """Commands that make a checkout of a commit which shares nothing with the source's."""
    return (
        ("git", "clone", "--quiet", "--no-hardlinks", str(source), str(into)),
        ("git", "-C", str(into), "checkout", "--quiet", "--detach", commit),
    )
