"""The machine's boot id."""

from pathlib import Path

from driver import errors


def read_boot_id(host_root: Path) -> str:
    """Return the current boot's id, from proc under `host_root`. Raises NodeFault."""
    path = host_root / "proc/sys/kernel/random/boot_id"
    try:
        return path.read_text().strip()
    except OSError as e:
        raise errors.NodeFault("read", str(path), str(e)) from e
