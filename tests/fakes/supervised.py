"""A node's whole core, over a simulated machine's process and the MPS supervisor's."""

import contextlib
from collections.abc import Iterator

from driver import clock
from driver.kubeletplugin import composition, ports
from driver.kubeletplugin.config import PluginConfig
from driver.kubeletplugin.prepare import release_wait
from simulator import layout
from tests.fakes import loading, mpsnode
from tests.support.builders import allocated_claims


@contextlib.contextmanager
def node() -> Iterator[mpsnode.Node]:
    """Eight GPUs, and a supervisor."""
    with mpsnode.machine() as base, contextlib.ExitStack() as ends:
        created = mpsnode.Node(base)
        ends.callback(created.close)
        created.supervise(f"--host-root={layout.Layout(base).host_root}")
        yield created


@contextlib.contextmanager
def core(
    on: mpsnode.Node, reader: ports.ClaimReader, wait_s: float = release_wait.WAIT_S
) -> Iterator[composition.Core]:
    """The core as the plugin wires it, in this process."""
    position = layout.Layout(on.base)
    config = PluginConfig(
        node_name=allocated_claims.NODE,
        cdi_root=on.own / "cdi",
        state_dir=on.own / "state",
        mps_dir=on.own / "s",
        driver_root=position.driver_root,
        host_root=position.host_root,
    )
    created = composition.build_core(config, reader, clock.SystemClock(), wait_s)
    try:
        yield created
    finally:
        created.close()
        loading.forget()
