"""The node's core, put together: NVML, records, CDI and locks behind the use case."""

from collections.abc import Callable
from dataclasses import dataclass

import structlog

from driver import clock, errors
from driver.devices import model
from driver.kubeletplugin import (
    checkpoint,
    discovery,
    driver_root,
    executor,
    injection,
    locks,
    nvml,
    patience,
    ports,
    prepare,
    recovery,
)
from driver.kubeletplugin.cdi import model as spec_model
from driver.kubeletplugin.cdi import store
from driver.kubeletplugin.config import PluginConfig

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Core:
    """What the shell needs of the node.

    `look` reads the GPUs; raises DeviceFault. `recover` makes records, CDI and hardware agree and
    names what it could not; it may be repeated; raises NodeFault. `close` lets go of the library.
    """

    preparation: ports.Preparation
    look: Callable[[], model.Inventory]
    recover: Callable[[], tuple[str, ...]]
    close: Callable[[], None]


def core(config: PluginConfig, reader: ports.ClaimReader, time: clock.Clock) -> Core:
    """The core of this node.

    Raises:
        NodeFault: the host's boot id cannot be read.
    """
    library = nvml.NvmlLibrary(config.driver_root, config.host_root)
    gpus = discovery.Discovery(library)
    kind = spec_model.kind(config.driver_name)
    specs = injection.Injection(
        kind,
        gpus,
        driver_root.DriverRoot(config.driver_root),
        store.Store(config.cdi_root, kind),
    )
    records = checkpoint.Checkpoint(
        config.state_dir / "claims", checkpoint.boot_id(config.host_root)
    )
    acting = executor.Executor(records, specs)
    holding = locks.Locks(config.state_dir / "locks", time)

    def recover() -> tuple[str, ...]:
        try:
            gpus.refresh()  # a spec names the minors of now
        except errors.DeviceFault as e:
            _log.info("GPUs not readable yet", error=str(e))
        report = recovery.recover(acting, holding)
        return tuple(f"{uid}: {problem}" for uid, problem in report.failed.items())

    place = prepare.Place(config.node_name, config.driver_name)
    return Core(
        patience.Patient(prepare.Preparer(place, reader, gpus, acting, holding), reader, time),
        gpus.refresh,
        recover,
        library.close,
    )
