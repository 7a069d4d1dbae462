"""Whether this node's GPUs are ours to offer, and what to do where somebody else has them.

A *no* is looked at again at every round of the publisher: what stands in the way goes without
anybody telling us.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from driver import names, reasons
from driver.kubeletplugin.publish import pool_builder
from driver.resources import fields, foreign_agents
from driver.resources.core import nodes

NOBODY: Final = "nobody"
DEVICE_PLUGIN: Final = "device-plugin"
_SHOWN = 3


def _none() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, slots=True)
class ConflictDetector:
    """`strangers`: sockets of other plugins registered under our name; raises NodeFault.

    `beside`: who may serve GPUs of the node as well.
    """

    driver: str = names.DRIVER
    beside: Literal["nobody", "device-plugin"] = NOBODY
    foreign_sockets: Callable[[], tuple[str, ...]] = _none

    def check_name(self, stored: Iterable[fields.Raw]) -> pool_builder.Problem | None:
        """Whether another driver uses our name here; `stored` are the slices of that name.

        Raises NodeFault.
        """
        found, slices = self.foreign_sockets(), foreign_agents.foreign(stored)
        if not found and not slices:
            return None
        return pool_builder.Problem(
            reasons.Reason.OTHER_DRIVER, _name_message(self.driver, found, slices)
        )

    def node_conflicts(self, node: nodes.Node) -> tuple[pool_builder.Problem, ...]:
        """Why the node's GPUs are not to be offered now, though the name is ours."""
        served = foreign_agents.device_plugin(node.allocatable)
        state = foreign_agents.mig_state(node.labels)
        found = []
        if served and self.beside != DEVICE_PLUGIN:
            problem = pool_builder.Problem(
                reasons.Reason.DEVICE_PLUGIN_BESIDE, _device_plugin_message(node.name, served)
            )
            found.append(problem)
        if state:
            found.append(
                pool_builder.Problem(
                    reasons.Reason.MIG_CONFIG_PENDING, _mig_message(node.name, state)
                )
            )
        return tuple(found)


def _name_message(driver: str, found: tuple[str, ...], slices: tuple[str, ...]) -> str:
    if found:
        where = f"it is registered at {_abbreviate(found)}"
        cure = "uninstall it there, or install Ration under another driverName"
    else:
        # What it published is not ours to delete. The kubelet does so 30 s after the driver went.
        where = f"ResourceSlices {_abbreviate(slices)} are its own"
        cure = (
            "uninstall it; where it is gone already: "
            f"kubectl delete resourceslices {' '.join(slices[:_SHOWN])}"
        )
    return f"another driver is called {driver} on this node: {where}. Nothing is published; {cure}"


def _device_plugin_message(node: str, served: Mapping[str, int]) -> str:
    told = ", ".join(f"{name}: {amount}" for name, amount in served.items())
    return (
        f"a device plugin serves GPUs of this node ({told}). None is published, or they would be "
        "given out twice; take the device plugin off the node (GPU Operator: kubectl label node "
        f"{node} nvidia.com/gpu.deploy.device-plugin=false --overwrite). Where it serves other "
        "GPUs than Ration: --beside=device-plugin"
    )


def _mig_message(node: str, state: str) -> str:
    return (
        f"label {foreign_agents.MIG_STATE_LABEL} is {state}: the MIG manager changes this node's "
        "GPUs. None is published until it is done. Ration makes MIG instances itself; to keep the "
        f"MIG manager away: kubectl label node {node} nvidia.com/gpu.deploy.mig-manager=false "
        "--overwrite"
    )


def _abbreviate(found: tuple[str, ...]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return ", ".join(found[:_SHOWN]) + more
