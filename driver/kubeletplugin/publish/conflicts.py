"""Detects other agents that serve this node's GPUs, and what to do about them.

Conflicts are re-evaluated on every publish; nothing notifies us when they end.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from driver import names, reasons
from driver.kubeletplugin.publish import pool_builder
from driver.resources import fields, foreign_agents
from driver.resources.core import nodes

_SHOWN = 3


def _none() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class ConflictDetector:
    """`foreign_sockets`: sockets of other plugins registered under our name; raises NodeFault.

    `allow_device_plugin`: a device plugin may serve other GPUs of the node.
    """

    driver: str = names.DRIVER
    allow_device_plugin: bool = False
    foreign_sockets: Callable[[], tuple[str, ...]] = _none

    def check_name(self, stored: Iterable[fields.Raw]) -> pool_builder.Problem | None:
        """Return the problem if another driver uses our name; `stored` are that name's slices.

        Raises NodeFault.
        """
        plugins, slices = self.foreign_sockets(), foreign_agents.find_foreign(stored)
        if not plugins and not slices:
            return None
        return pool_builder.Problem(
            reasons.Reason.DRIVER_NAME_CONFLICT, _name_message(self.driver, plugins, slices)
        )

    def node_conflicts(self, node: nodes.Node) -> tuple[pool_builder.Problem, ...]:
        """Return why the node's GPUs are not to be published now, though the name is ours."""
        served = foreign_agents.device_plugin(node.allocatable)
        state = foreign_agents.mig_state(node.labels)
        problems = []
        if served and not self.allow_device_plugin:
            problem = pool_builder.Problem(
                reasons.Reason.DEVICE_PLUGIN_PRESENT, _device_plugin_message(node.name, served)
            )
            problems.append(problem)
        if state:
            problems.append(
                pool_builder.Problem(
                    reasons.Reason.MIG_CONFIG_PENDING, _mig_message(node.name, state)
                )
            )
        return tuple(problems)


def _name_message(driver: str, plugins: tuple[str, ...], slices: tuple[str, ...]) -> str:
    if plugins:
        proof = f"it is registered at {_abbreviate(plugins)}"
        cure = "uninstall it there, or install Ration under another driverName"
    else:
        # Its slices are not ours to delete. The kubelet does so 30 s after the driver went.
        proof = f"ResourceSlices {_abbreviate(slices)} are its own"
        cure = (
            "uninstall it; where it is gone already: "
            f"kubectl delete resourceslices {' '.join(slices[:_SHOWN])}"
        )
    return f"another driver is called {driver} on this node: {proof}. Nothing is published; {cure}"


def _device_plugin_message(node: str, served: Mapping[str, int]) -> str:
    counts = ", ".join(f"{name}: {amount}" for name, amount in served.items())
    return (
        f"a device plugin serves GPUs of this node ({counts}). None is published, as they could be "
        "allocated twice; remove the device plugin from the node (GPU Operator: kubectl label node "
        f"{node} nvidia.com/gpu.deploy.device-plugin=false --overwrite). If it serves other "
        "GPUs than Ration, set --allow-device-plugin"
    )


def _mig_message(node: str, state: str) -> str:
    return (
        f"label {foreign_agents.MIG_STATE_LABEL} is {state}: the MIG manager changes this node's "
        "GPUs. None is published until it is done. Ration makes MIG instances itself; to keep the "
        f"MIG manager away: kubectl label node {node} nvidia.com/gpu.deploy.mig-manager=false "
        "--overwrite"
    )


def _abbreviate(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
