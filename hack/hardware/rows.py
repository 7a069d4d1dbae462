"""Which facts decide which rows of docs/explanation/hardware-evidence.md, and which rows none does.

A row is named by how its first cell begins. Fact ids ending in `*` stand for all that begin so.
"""

import fnmatch
from collections.abc import Iterable
from pathlib import Path
from typing import Final

EVIDENCE: Final = Path(__file__).parents[2] / "docs" / "explanation" / "hardware-evidence.md"
_HEAD = "Fact"

FACTS: Final[dict[str, tuple[str, ...]]] = {
    "Profiles, ids and placements of A100": ("mig.profiles", "smi.mig-profiles"),
    "Profiles, ids and placements of H100": ("mig.profiles", "smi.mig-profiles"),
    "The same of B200, GB200": ("mig.profiles", "smi.mig-profiles"),
    "MiB, SMs and engines of 3g": ("smi.mig-profiles",),
    "RTX PRO 6000: 12 memory slices": ("mig.profiles", "smi.mig-placements"),
    "A GPU-instance id follows": ("mig.make-*", "smi.mig-instances"),
    "On some boards the halves": ("mig.make-*",),
    "Which boards those are": ("mig.make-*",),
    "Memory slices that do not overlap": ("mig.make-*",),
    "Placements can be listed with MIG off": ("mig.mode", "mig.profiles"),
    "A 1-slice profile with more SMs": ("smi.mig-compute-profiles", "mig.make-*"),
    "`.device` of a compute instance": ("mig.make-*",),
    "The compute profile that is all": ("smi.mig-compute-profiles",),
    "The minor of a capability": ("host.minors-listed-alike",),
    "Profile names come as": ("mig.profile-names",),
    "An instance made again": ("mig.make-*",),
    "From Hopper on the mode changes at once": ("mig.enable", "mig.disable"),
    "Ampere needs a reset": ("mig.enable",),
    "Ampere's status is RESET_REQUIRED": ("mig.enable",),
    "A mode that cannot be at once": ("mig.enable-beside-our-events", "mig.enable"),
    "Any other NVML client can make": ("mig.enable-beside-our-events",),
    "Capability minors: 3 + GPU": ("host.minors-by-formula",),
    "Rows are remapped from Ampere on": ("health.remapped-rows", "health.retired-pages"),
    "Field 230 is answered": ("health.signs",),
    "Event types above 0x100": ("event.supported",),
    "On Linux each of several Xids": ("event.xid-of-illegal-address",),
    "Earlier events are lost": ("event.before-registering",),
    "SRAM status is root's": ("health.signs",),
    "The unrepairable-memory flag": ("health.signs",),
    "Time-slice by `nvidia-smi": ("slice.*",),
    "What it prints, for success": ("slice.*", "smi.compute-policy"),
    "The interval is a GPU's": ("reset.slice-listed",),
    "HGX H100 tells a fabric": ("smi.query",),
    "Across a bridge the other end": ("smi.nvlink-remote",),
    "An A30's bridge has 4 links": ("smi.nvlink-status",),
    "A PCIe card's module id is 0": ("nvml.module-id",),
    "Place in the rack": ("smi.query",),
    "L4: PCI ids": ("nvml.gpu", "smi.query"),
    "B200, GB200: totals": ("nvml.gpu", "smi.query"),
    "H200: subsystem": ("nvml.gpu", "smi.query"),
    "`nvidia-ctk cdi generate`": ("cdi.toolkit-alike", "cdi.files"),
    "A driver that lacks a function": ("nvml.missing-functions",),
    "Which functions a driver's library exports": ("nvml.missing-functions",),
    "Names and arguments of the v2": ("mps.words",),
    "`get_server_status` is unknown": ("mps.words",),
    "What a command prints when": ("mps.words",),
    "A bad percentage": ("mps.words",),
    "Percentages are shown as": ("mps.words",),
    "A limit of 1 GiB and more": ("mps.words", "mps.limit-whole-gib"),
    "Without a limit nothing": ("mps.words",),
    "A device is not looked at": ("mps.words",),
    "Columns of `ps`": ("mps.words-of-a-server",),
    "Only root and the daemon's user": ("mps.commands-of-a-tenant",),
    "Files in the pipe directory": ("mps.pipe-files",),
    "The pid file goes": ("mps.pipe-files-after-quit", "mps.exit-status-after-quit"),
    "A second daemon": ("mps.second-daemon",),
    "No daemon": ("mps.words-without-daemon",),
    "The same words when": ("mps.long-path",),
    "`-f` prints the control log": ("mps.log-files",),
    "Lines of control.log": ("mps.log-files", "mps.client-fault"),
    "Server at the first client": ("mps.second-user-*",),
    "A client that waits": ("mps.second-user-*",),
    "In multi-user mode": ("mps.second-user-multi-user",),
    "A killed daemon takes": ("mps.daemon-killed",),
    "A killed server": ("mps.server-killed",),
    "A client's fault is one": ("mps.client-fault",),
    "The error of the neighbours": ("mps.client-fault",),
    "The Xid of an illegal address": ("event.xid-of-illegal-address", "cuda.illegal-address"),
    "A client may only lower": ("mps.client-sets-*", "supervisor.share-*"),
    "The share of threads": ("mps.multiprocessors", "supervisor.share-*"),
    "Limits include what CUDA": ("mps.limit-by-index", "mps.small-limit"),
    "NVML lists clients": ("mps.listed-by-nvml",),
    "`usedGpuMemory` may be": ("memory.listed-by-our-pid",),
    "A call of NVML takes": ("time.*",),
    "Clients with a `/dev/shm` of their own": ("container.shm-*",),
    "A limit for a UUID": ("mps.limit-by-uuid-*",),
    "A client's own limit may go by UUID": ("mps.client-sets-by-uuid",),
    "A client's limit for a GPU": ("mps.client-sets-a-gpu-it-lacks",),
    "Under a limit `cudaMemGetInfo`": ("mps.limit-by-index", "supervisor.share-*"),
    "A client killed with work": ("mps.client-killed",),
    "`terminate_client` prints": ("mps.terminate-client",),
    "A client opens nothing": ("supervisor.read-only-pipe",),
    "`quit` waits": ("mps.quit-under-a-client",),
    "A program that finds no daemon": ("mps.daemon-killed",),
    "48 clients a device": ("mps.many-clients",),
}

OPEN: Final[dict[str, str]] = {
    "`+me.all` leaves": "needs a board with that profile and both made by hand",
    "Asking for the mode that is current": "needs a mode that is pending",
    "A lost GPU comes back": "needs a GPU that falls off the bus",
    "The largest profile has room": "needs a GPU whose MIG may be changed, and an instance on it",
    "Profiles and placements do not change": "needs readings before and after every kind of change",
    "A handle of a destroyed": "asked by tests/contract/nvml on hardware that may be changed",
    "A taken place is": "asked by tests/contract/nvml on hardware that may be changed",
    "Destroying a GPU instance": "asked by tests/contract/nvml on hardware that may be changed",
    "Turning MIG off": "asked by tests/contract/nvml on hardware that may be changed",
    "Ampere keeps its mode": "needs a reboot",
    "From Hopper on the mode is lost": "needs a reboot",
    "The minor number can change": "needs a machine with several GPUs whose modes change",
    "Instances are lost": "needs a reset with instances, which the plugin never does",
    "MIG calls need root": "needs a second user who may open the capability",
    "A vGPU guest": "needs a vGPU guest",
    "On the GPU with MIG on": "needs a container runtime",
    "A listener without root": "needs MIG on and a second user",
    "A wait with a lost GPU": "needs a GPU that falls off the bus",
    "A lost GPU is counted": "needs a GPU that falls off the bus",
    "SRAM errors": "needs SRAM errors",
    "Channel and TPC repairs": "needs such a repair",
    "That flag cannot be read": "decided by the header; the plugin reads the flag by its own type",
    "What each Xid asks for": "needs each of the Xids",
    "It is NOT_SUPPORTED in a vGPU": "needs a vGPU guest",
    "A GPU's compute mode with MIG": "needs MIG on; asked by tests/contract/nvml",
    "With MIG on, utilisation": "needs MIG on; asked by tests/contract/nvml",
    "An all-zero cluster": "needs a rack",
    "Idle power": "nothing depends on it",
    "A container's programs find": "needs a container runtime",
    "A server that is told to end": "seen when the supervisor told one",
    "A handle by PCI address is": "asked by tests/contract/nvml",
    "A handle by PCI address": "needs a GPU that initializes slowly",
    "Other GPUs' calls of a process": "needs a GPU whose calls hang",
    "Xid 109 is": "needs a kernel that never yields",
    "535.261.03 lacks": "decided by the libraries themselves, without a GPU",
    "Without the kernel's module": "decided by the libraries themselves, without a GPU",
    "The driver's programs take the loader": "decided by the programs themselves, without a GPU",
    "Their folders:": "needs such a node",
    "`/opt/nvidia/current`": "needs such a node",
    "Memory bandwidth": "needs two CUDA programs that copy",
    "Another shell is connected": "tried on 535 and 550, without a GPU",
    "A control daemon of 580": "tried on 580 and 595, without a GPU",
    "The control program has": "tried on 535, 550, 580 and 595, without a GPU",
    "Pascal's control program": "needs a GPU older than Volta",
    "A server that cannot start": "needs a GPU that may be prohibited",
    "`/tmp/nvidia-mps`": "no daemon of ours is without a directory",
    "A client counts for": "needs 61 CUDA programs at once",
    "A MIG device has": "needs MIG on",
    "In an exclusive GPU": "needs a GPU whose compute mode may be set, and MPS on it",
    "A process that may open": "needs MIG on",
    "CUDA_VISIBLE_DEVICES ends": "needs several GPUs",
}
"""Rows that no step decides, each with what it would need."""


def names(text: str) -> list[str]:
    """List the first cells of an evidence page's rows."""
    cells = (line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| "))
    return [cell for cell in cells if cell != _HEAD]


def begins(row: str, prefixes: Iterable[str]) -> str | None:
    """Return the one of the prefixes that a row begins with; the longest where several do."""
    return max((prefix for prefix in prefixes if row.startswith(prefix)), key=len, default=None)


def decides(row: str, fact: str) -> bool:
    """Tell whether a fact is one of those that decide a row."""
    prefix = begins(row, FACTS)
    return prefix is not None and any(
        fnmatch.fnmatchcase(fact, pattern) for pattern in FACTS[prefix]
    )
