"""Plan of the move of nodes from another DRA driver to Ration's kubelet plugin, and back. Pure.

Two drivers on one node would publish the same GPUs. A label of the node decides: Ration's
DaemonSets select it, and those of the other driver keep away from it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import yaml

from driver import names
from driver.cli import output as out
from driver.cli.migrate import steps

_LABELLED: Mapping[str, object] = {"nodeSelector": {steps.TAKEN: "true"}}
_KEEP_AWAY: Mapping[str, str] = {"key": steps.TAKEN, "operator": "DoesNotExist"}


@dataclass(frozen=True, slots=True)
class DraPlan:
    """Move of some nodes from the driver; no nodes: the commands of any node."""

    driver: str
    nodes: tuple[str, ...] = ()

    @property
    def values(self) -> Mapping[str, object]:
        """Values of Ration's chart: the controller allocates the devices of both drivers."""
        return {
            "kubeletPlugin": {"enabled": True, **_LABELLED},
            "mps": _LABELLED,
            "admission": {"convert": "off"},
            "controller": {"managedDrivers": [{"name": self.driver}]},
        }

    def node_steps(self, node: str) -> steps.Steps:
        """Return the commands that move a node, and those that move it back."""
        slices = f"kubectl get resourceslices --field-selector spec.nodeName={node}"
        drain = f"kubectl drain {node} --ignore-daemonsets --delete-emptydir-data"
        label = f"kubectl label node {node} {steps.TAKEN}"
        return steps.Steps(
            takeover=(
                drain,
                f"{label}=true",
                f"{slices}  # until {names.DRIVER} is listed, and {self.driver} is not",
                f"ration doctor --node {node}",
                f"kubectl uncordon {node}",
            ),
            rollback=(
                drain,
                f"{label}-",
                f"{slices}  # until {self.driver} is listed, and {names.DRIVER} is not",
                f"kubectl uncordon {node}",
            ),
        )


def show(plan: DraPlan, output: out.Format) -> None:
    """Print the plan."""
    match output:
        case out.Format.TABLE | out.Format.WIDE:
            print("\n".join(_lines(plan)))
        case out.Format.JSON:
            print(json.dumps(document(plan), indent=2))
        case out.Format.YAML:
            print(_as_yaml(document(plan)), end="")


def document(plan: DraPlan) -> Mapping[str, object]:
    """Return the plan for programs."""
    return {
        "driver": plan.driver,
        "values": plan.values,
        "matchExpressionOfTheDriver": _KEEP_AWAY,
        "nodes": [
            {"node": node, "takeover": list(moved.takeover), "rollback": list(moved.rollback)}
            for node, moved in _moves(plan)
        ],
    }


def _lines(plan: DraPlan) -> Iterator[str]:
    yield f"Ration's controller allocates the devices of {plan.driver} and of {names.DRIVER}."
    yield from ("", "VALUES OF RATION'S CHART", *_indented(plan.values))
    yield from ("", f"IN EACH nodeSelectorTerm OF THE DAEMONSET OF {plan.driver}")
    yield from _indented({"matchExpressions": [_KEEP_AWAY]})
    install = "helm upgrade --install ration deploy/helm/ration -n ration-system -f values.yaml"
    yield from ("", "BEFORE THE FIRST NODE", f"  {install}")
    for node, moved in _moves(plan):
        yield from ("", f"NODE {node}" if plan.nodes else "EACH NODE")
        yield from (f"  {command}" for command in moved.takeover)
        yield from ("  back:", *(f"    {command}" for command in moved.rollback))


def _moves(plan: DraPlan) -> Sequence[tuple[str, steps.Steps]]:
    return [(node, plan.node_steps(node)) for node in plan.nodes or ("NODE",)]


def _indented(value: object) -> Iterator[str]:
    return (f"  {line}" for line in _as_yaml(value).rstrip().splitlines())


def _as_yaml(value: object) -> str:
    """Return YAML without the aliases of parts that occur twice."""
    return yaml.safe_dump(json.loads(json.dumps(value)), sort_keys=False)
