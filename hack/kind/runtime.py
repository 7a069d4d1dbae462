"""runc for a machine whose processes lack a capability: containers ask for what it can give.

A privileged container asks for every capability that the kernel has, and runc dies of `unable to
apply caps` where the machine's own bounding set is smaller. Docker's daemon is given `render`'s
program as its runtime: it takes what cannot be had out of a container's configuration, and becomes
runc. It runs alone, so this module needs nothing but the standard library.
"""

import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

# In the kernel's order (capability.h): the number of each is its place.
NAMES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID",
    "SETPCAP", "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW",
    "IPC_LOCK", "IPC_OWNER", "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT",
    "SYS_ADMIN", "SYS_BOOT", "SYS_NICE", "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD",
    "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP", "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG",
    "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF", "CHECKPOINT_RESTORE",
)  # fmt: skip
RESOURCE = "CAP_SYS_RESOURCE"
_BOUNDING = re.compile(r"^CapBnd:\s*([0-9a-f]+)$", re.MULTILINE)
_BUNDLE = ("--bundle", "-b")
_PROCESS = ("--process", "-p")


def missing(status: str) -> frozenset[str]:
    """The capabilities outside the bounding set that /proc/PID/status shows."""
    line = _BOUNDING.search(status)
    bits = int(line.group(1), 16) if line else 0
    return frozenset(f"CAP_{name}" for number, name in enumerate(NAMES) if not bits >> number & 1)


def configuration(words: Sequence[str]) -> Path | None:
    """The file with a container's, or another process's, capabilities among runc's arguments."""
    for position, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals:
            value = words[position + 1] if position + 1 < len(words) else ""
        if name in _BUNDLE:
            return Path(value) / "config.json"
        if name in _PROCESS:
            return Path(value)
    return None


def without(document: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The configuration without these capabilities."""
    absent = frozenset(names)
    process = document.get("process", document)
    capabilities = process.get("capabilities") or {}
    process["capabilities"] = {
        kind: [name for name in wanted if name not in absent]
        for kind, wanted in capabilities.items()
    }
    return document


def render(python: str) -> str:
    """The program's text, for the interpreter of that path."""
    return f"#!{python} -IS\n{Path(__file__).read_text()}"


def main(words: list[str], become: Callable[[str, list[str]], None] = os.execv) -> None:
    """Rewrite the configuration that runc's arguments name, if any, and become runc."""
    path = configuration(words)
    absent = missing(Path("/proc/self/status").read_text())
    if path is not None and path.is_file() and absent:
        document = without(json.loads(path.read_text()), absent)
        path.write_text(json.dumps(document))
    program = shutil.which("runc", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        raise SystemExit("runc: not found")
    become(program, ["runc", *words])


if __name__ == "__main__":
    main(sys.argv[1:])
