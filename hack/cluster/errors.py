"""What can go wrong with the local cluster, each with the words a person needs."""

from pathlib import Path


class ClusterError(Exception):
    """The cluster, or the machine under it, did not do what was asked."""


class NotUp(ClusterError):
    """No cluster of this checkout is up."""

    def __init__(self, checkout: Path) -> None:
        self.checkout = checkout
        super().__init__(f"no local cluster of {checkout} is up; start one with: make cluster-up")


class OwnedElsewhereError(ClusterError):
    """Another checkout's cluster holds this machine."""

    def __init__(self, owner: Path) -> None:
        self.owner = owner
        super().__init__(
            f"this machine already runs the local cluster of {owner}; "
            f"end it first with: make -C {owner} cluster-down "
            "(or, if that checkout is gone: python -m hack.cluster down --owner any)"
        )


class CommandFailedError(ClusterError):
    """A program ended with an error."""

    def __init__(self, argv: tuple[str, ...], code: int, output: str) -> None:
        self.argv = argv
        self.code = code
        self.output = output
        super().__init__(f"{' '.join(argv)}: exit status {code}: {output.strip()[-2000:]}")


class NotInTimeError(ClusterError):
    """Something did not happen within its time."""

    def __init__(self, what: str, seconds: float, detail: str = "") -> None:
        self.what = what
        self.seconds = seconds
        tail = f"\n{detail.rstrip()}" if detail else ""
        super().__init__(f"{what}: not within {seconds:.0f} s{tail}")
