"""The node's GPUs as last known, for a process that starts while one of them hangs.

It is one file, written when its content would change:

    {"version":1,"gpus":[{"uuid":"GPU-...","pci":"0000:53:00.0",...}]}

Nothing is prepared from it: it names the GPUs to publish with their taint, and to look for.
"""

from dataclasses import dataclass
from pathlib import Path

import pydantic
import structlog

from driver import errors
from driver.devices import model
from driver.runtime.files import atomic, failpoints

_log = structlog.get_logger(__name__)
VERSION = 1
"""The file's schema; one of another is no file."""
_MODE = 0o600


@dataclass(frozen=True, slots=True)
class _Document:
    """The file."""

    gpus: tuple[model.Gpu, ...] = ()
    version: int = VERSION


_FORMAT: pydantic.TypeAdapter[_Document] = pydantic.TypeAdapter(_Document)


class LastInventory:
    """Implements `discovery.InventoryStore`. An unreadable file counts as empty."""

    def __init__(self, file: Path, watch: failpoints.Observer = failpoints.NO_OBSERVER) -> None:
        self._file = file
        self._watch = watch
        self._saved: tuple[model.Gpu, ...] = ()

    def read(self) -> model.Inventory:
        """Return the GPUs known last, as GPUs that cannot be read now."""
        try:
            data = atomic.read(self._file)
            document = _FORMAT.validate_json(data) if data is not None else _Document()
        except (errors.NodeFault, ValueError) as e:
            _log.warning("last inventory not readable", error=str(e))
            return model.Inventory()
        if document.version != VERSION:
            return model.Inventory()
        self._saved = document.gpus
        return model.Inventory(lost=document.gpus)

    def write(self, inventory: model.Inventory) -> None:
        """Write the GPUs without fsync; a failed write is only logged."""
        gpus = inventory.all_gpus
        if gpus == self._saved:
            return
        try:
            data = _FORMAT.dump_json(_Document(gpus))
            atomic.replace(self._file, data, _MODE, self._watch, synced=False)
        except errors.NodeFault as e:
            _log.warning("last inventory not written", error=str(e))
            return
        self._saved = gpus
