"""Multi-user support of a GPU's MPS server. Pure.

Without it a client of another user waits, without a message, until the server has no clients left
(MPS documentation, "Architecture"). The control program knows the mode (`-M`) in 580.178.04 and
595.99.02, and not in 535.261.03 and 550.163.01: there it takes the option for a client's call and
ends. Versions between were not tried, and count as without it.
"""

from dataclasses import dataclass

DRIVER = 580
"""The lowest driver branch that is known to have it."""
_VOLTA = (7, 0)
_ANY = 1 << 16


@dataclass(frozen=True, slots=True)
class MpsServer:
    """The MPS server that a GPU can have; without arguments, of a GPU that has everything.

    `driver` is the driver's major version. `multi_user` is how the GPU's server runs for others
    already; None: it does not, or that is not known.
    """

    driver: int = _ANY
    capability: tuple[int, int] = (99, 0)
    multi_user: bool | None = None

    @property
    def missing_support(self) -> str:
        """The obstacle to serving several users, and what is needed; "" where there is none."""
        if self.driver < DRIVER:
            return f"driver {self.driver}; expected {DRIVER} at least"
        if self.capability < _VOLTA:
            has = ".".join(str(part) for part in self.capability)
            return f"compute capability {has}; expected 7.0 at least"
        return ""

    def serves_several(self, requested: bool | None) -> bool:  # noqa: FBT001 - a value of the API
        """Return the requested mode; else the running server's; else whether it is supported."""
        if requested is not None:
            return requested
        return not self.missing_support if self.multi_user is None else self.multi_user


ANY = MpsServer()
"""A GPU that is not known."""


def major(version: str) -> int:
    """The major version of a driver's; one that cannot be read has everything."""
    first = version.partition(".")[0]
    return int(first) if first.isdigit() else _ANY
