"""What the node's GPUs are, as last read."""

import threading

from driver.devices import model
from driver.kubeletplugin import ports


class Discovery:
    """The inventory, read when asked to; empty before the first reading. Thread safe."""

    def __init__(self, nvml: ports.Nvml) -> None:
        self._nvml = nvml
        self._reading = threading.Lock()
        self._inventory = model.Inventory()
        self._stale = False

    def current(self) -> model.Inventory:
        """As last read."""
        return self._inventory

    def trusted(self) -> model.Inventory:
        """As last read, and read again when the last reading failed. Raises DeviceFault.

        Minors may have moved by the time that a driver is back, so what it said before is no
        ground to prepare on.
        """
        return self.refresh() if self._stale else self._inventory

    def refresh(self) -> model.Inventory:
        """Read it again. Raises DeviceFault, and the last one stays."""
        with self._reading:
            self._stale = True
            self._inventory = model.remember(self._inventory, self._nvml.inventory())
            self._stale = False
            return self._inventory
