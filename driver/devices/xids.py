"""Classes of Xids: the table behind taints, events and docs/explanation/health.md.

Sources: NVIDIA's Xid catalog (the action it asks for) and docs/explanation/health.md for the
differences. A class answers one question: who must act before the GPU may be allocated again.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Self

from driver import errors

_HIGHEST = 999


class XidClass(StrEnum):
    """Class of an Xid, by who must act."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """Create a string member with its meaning."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    APPLICATION = ("application", "The program that ran; the GPU is fine.")
    INFORMATIONAL = (
        "informational",
        "Nobody now. The GPU is looked at at once, and tainted if that finds something.",
    )
    RESET = ("reset", "The GPU wants a reset before it is used again.")
    NODE = ("node", "The node wants a reboot, or a restart of its virtual or bare machine.")
    HARDWARE = ("hardware", "The GPU wants replacing.")


UNKNOWN_CLASS = XidClass.INFORMATIONAL
"""Class of a code that is not in the table: reported, never a taint by itself. A driver that adds a
code also keeps the recovery action (field 230), which is read after every such Xid, so a grave new
code still taints, and a harmless one takes no GPU away.
"""


@dataclass(frozen=True, slots=True)
class Xid:
    """One code: its class, and a short description."""

    code: int
    xid_class: XidClass
    meaning: str


def _rows(xid_class: XidClass, meanings: Mapping[int, str]) -> Iterable[Xid]:
    return (Xid(code, xid_class, meaning) for code, meaning in meanings.items())


_APPLICATION = {
    8: "the program's work made no progress",
    11: "invalid command stream",
    13: "exception in a kernel, often an access out of bounds",
    25: "invalid command stream",
    31: "memory page fault",
    32: "corrupted command buffer",
    43: "the program stopped after a fault of its own",
    45: "the program's work was cleaned up, after another fault or a kill",
    68: "exception in the video decoder",
    69: "error of the graphics engine's class",
    137: "illegal access to a peer over NVLink",
}
_INFORMATIONAL = {
    63: "a bad row of memory was recorded; it is remapped at the next reset",
    92: "many corrected memory errors",
    94: "uncorrectable memory error, contained to one program",
    # A kernel that never yields ends so, and both of NVIDIA's drivers take it for the program's.
    109: "a context switch timed out",
    # NVLink 5 tells harmless from fatal by sub-codes that NVML does not report. The drivers that
    # know these codes also keep the recovery action, which is read after each of them.
    144: "NVLink: link interface (SAW)",
    145: "NVLink: link layer (RLW)",
    146: "NVLink: transport layer (TLW)",
    147: "NVLink: crossbar (TREX)",
    148: "NVLink: power control (NVLPW)",
    149: "NVLink: link events (NETIR)",
    150: "NVLink: control unit (MSE)",
    154: "the GPU's recovery action changed",
    157: "a broken part could not be retired for lack of spares; work may go on",
    171: "more about Xid 48: the error is in device memory",
    172: "more about Xid 48: the error is in on-chip memory",
}
_RESET = {
    46: "the GPU stopped processing",
    48: "uncorrectable memory error",
    62: "an internal controller halted",
    64: "a bad row of memory could not be remapped",
    # The catalog: a reset or reboot clears it, whichever end of the link is broken.
    74: "NVLink: a link failed",
    95: "uncorrectable memory error, not contained to one program",
    110: "security fault",
    119: "the GPU's system processor does not answer",
    120: "error of the GPU's system processor",
    136: "a link's training failed",
    140: "uncorrectable memory error that kept the driver from retiring the memory",
    143: "the GPU could not be initialised",
    155: "NVLink: a link was taken down by software",
    156: "a broken part was retired",
    158: "fatal timeout inside the GPU",
}
_NODE = {
    79: "the GPU fell off the bus",
    151: "key rotation failed (confidential computing)",
    167: "fatal timeout on PCIe",
    168: "errors in protected memory: less memory than there should be",
    173: "fatal error of the link to the CPU (C2C)",
    175: "error of the memory subsystem",
}

TABLE: Mapping[int, Xid] = MappingProxyType(
    {
        xid.code: xid
        for xid in (
            *_rows(XidClass.APPLICATION, _APPLICATION),
            *_rows(XidClass.INFORMATIONAL, _INFORMATIONAL),
            *_rows(XidClass.RESET, _RESET),
            *_rows(XidClass.NODE, _NODE),
        )
    }
)
"""The default. Nothing is of class hardware by its code alone: that is read off the GPU."""


def build_table(overrides: Mapping[int, XidClass]) -> Mapping[int, Xid]:
    """Return the default table with other classes for some codes, known or not."""
    changed = {
        code: Xid(code, xid_class, lookup(TABLE, code).meaning)
        for code, xid_class in overrides.items()
    }
    return MappingProxyType({**TABLE, **changed})


def lookup(rows: Mapping[int, Xid], code: int) -> Xid:
    """Return the code's row; one of `UNKNOWN_CLASS` if there is none."""
    return rows.get(code) or Xid(code, UNKNOWN_CLASS, "a code that is not in the table")


def parse_override(text: str, location: str = "--xid-class") -> tuple[int, XidClass]:
    """Parse `109=application`: a code and its class. Raises BadInput."""
    code, equals, name = text.partition("=")
    if not equals:
        raise errors.BadInput(location, f"{text!r} is no CODE=CLASS", "one like 109=application")
    if not (code.isascii() and code.isdigit() and 1 <= int(code) <= _HIGHEST):
        raise errors.BadInput(location, f"{code!r} is no Xid", f"a number from 1 to {_HIGHEST}")
    classes = {xid_class.value: xid_class for xid_class in XidClass}
    if name not in classes:
        expected = ", ".join(classes)
        raise errors.BadInput(location, f"{name!r} is no class of Xids", f"one of {expected}")
    return int(code), classes[name]


def parse_overrides(texts: Iterable[str], location: str = "--xid-class") -> Mapping[int, XidClass]:
    """Return all overrides of a command line, for `build_table`. Raises BadInput."""
    overrides: dict[int, XidClass] = {}
    for text in texts:
        code, xid_class = parse_override(text, location)
        if code in overrides:
            raise errors.BadInput(location, f"Xid {code} is given twice")
        overrides[code] = xid_class
    return overrides
