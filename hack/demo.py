"""`make demo`: examples/quickstart on the local cluster, and a table of who got which GPU."""

import json
import sys
import time
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import rich.console

from hack.cluster import api, errors

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "quickstart" / "quickstart.yaml"
NAMESPACE = "quickstart"
READY = "ready"
"""What a container prints once it has looked around."""
WAIT_S = 120
Object = dict[str, Any]
_console = rich.console.Console(soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One pod: where it runs, its devices as allocated, and what its container saw.

    `why` is of a pod that waits: what the controller says of it.
    """

    pod: str
    node: str
    devices: tuple[str, ...]
    seen: tuple[str, ...]
    why: str = ""

    @property
    def settled(self) -> bool:
        """Whether it runs and has looked, or is known to wait."""
        return bool(self.seen or self.why)


def main() -> int:
    """Apply the example, wait, and show what each container sees."""
    try:
        cluster = api.Cluster.load(ROOT)
        _console.print(f"Applying {EXAMPLE.relative_to(ROOT)} ...")
        cluster.kubectl("apply", "-f", str(EXAMPLE))
        rows = _wait(cluster)
    except errors.ClusterError as error:
        _console.print(f"[red]error:[/] {error}", highlight=False)
        return 1
    _show(rows)
    return 0


def _wait(cluster: api.Cluster) -> list[Row]:
    deadline = time.monotonic() + WAIT_S
    while True:
        rows = _rows(cluster)
        if rows and all(row.settled for row in rows):
            return rows
        if time.monotonic() > deadline:
            told = cluster.kubectl("get", "pods,resourceclaims,events", "-n", NAMESPACE)
            raise errors.ClusterError(f"not all pods settled within {WAIT_S} s:\n{told}")
        time.sleep(0.5)


def _rows(cluster: api.Cluster) -> list[Row]:
    pods = _items(cluster, "pods")
    claims = {one["metadata"]["name"]: one for one in _items(cluster, "resourceclaims")}
    return [_row(cluster, pod, claims) for pod in pods]


def _items(cluster: api.Cluster, kind: str) -> list[Object]:
    found = json.loads(cluster.kubectl("get", kind, "-n", NAMESPACE, "-o", "json"))
    return list(found["items"])


def _row(cluster: api.Cluster, pod: Object, claims: dict[str, Object]) -> Row:
    name = pod["metadata"]["name"]
    made = {
        one["name"]: one.get("resourceClaimName")
        for one in pod["status"].get("resourceClaimStatuses", [])
    }
    named = [
        entry.get("resourceClaimName") or made.get(entry["name"]) or ""
        for entry in pod["spec"]["resourceClaims"]
    ]
    devices = [_device(result) for one in named for result in _results(claims.get(one))]
    running = pod["status"].get("phase") == "Running"
    log = cluster.kubectl("logs", "-n", NAMESPACE, name) if running else ""
    seen, ready, _ = log.partition(f"{READY}\n")
    return Row(
        pod=name,
        node=pod["spec"].get("nodeName", ""),
        devices=tuple(devices),
        seen=tuple(seen.splitlines()) if ready else (),
        why="" if running or devices else _why(cluster, name),
    )


def _device(result: Object) -> str:
    """Its name, and of a share how much: `gpu-0000-53-00-0-mps 20Gi 40 %`."""
    taken = result.get("consumedCapacity", {})
    parts = [taken.get("memory", ""), f"{taken['compute']} %" if "compute" in taken else ""]
    return " ".join([result["device"], *filter(None, parts)])


def _why(cluster: api.Cluster, pod: str) -> str:
    """The newest word of the controller on a pod that fits nowhere."""
    fields = f"reason=NoFit,regarding.name={pod}"
    options = ("-n", NAMESPACE, "--field-selector", fields, "-o", "json")
    told = json.loads(cluster.kubectl("get", "events.events.k8s.io", *options))["items"]
    return str(told[-1]["note"]) if told else ""


def _results(claim: Object | None) -> list[Object]:
    allocation = (claim or {}).get("status", {}).get("allocation", {})
    return list(allocation.get("devices", {}).get("results", []))


def _show(rows: list[Row]) -> None:
    lines = [("POD", "NODE", "DEVICES", "SEEN INSIDE")]
    for row in rows:
        beside = zip_longest(row.devices, row.seen or (row.why,), fillvalue="")
        for index, (device, seen) in enumerate(beside):
            pod, node = (row.pod, row.node or "waits") if index == 0 else ("", "")
            lines.append((pod, node, device, seen))
    widths = [max(len(line[column]) for line in lines) + 2 for column in range(3)]
    for line in lines:
        padded = "".join(line[column].ljust(widths[column]) for column in range(3))
        _console.print(padded + line[3], highlight=False, markup=False)
    _console.print(
        "\nThe cluster stays up. Try next:\n"
        "  export KUBECONFIG=$PWD/.cluster/kubeconfig PATH=$PWD/.cluster/bin:$PATH\n"
        "  kubectl -n quickstart get events --sort-by=.lastTimestamp   # why each GPU was chosen\n"
        "  kubectl get resourceslices -o yaml                          # what the nodes publish\n"
        "  kubectl -n quickstart delete pod either                      # and `too-big` runs\n"
        "  make demo-down                                              # end the cluster\n"
        "Who has which GPU, and why `too-big` waits, at http://localhost:8081:\n"
        "  kubectl -n ration-system port-forward pod/$(kubectl -n ration-system get lease \\\n"
        "    ration-controller -o jsonpath='{.spec.holderIdentity}' | sed 's/-[^-]*$//') 8081\n",
        highlight=False,
        markup=False,
    )


if __name__ == "__main__":
    sys.exit(main())
