"""`make demo`: examples/quickstart on the local cluster, and a table of who got which GPU."""

import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rich.console

from hack.cluster import api, errors

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = ROOT / "examples" / "quickstart" / "quickstart.yaml"
NAMESPACE = "quickstart"
WAIT_S = 120
Object = dict[str, Any]
_console = rich.console.Console(soft_wrap=True)


@dataclass(frozen=True, slots=True)
class Row:
    """One pod: where it runs, its devices as allocated, and the GPUs its container saw."""

    pod: str
    node: str
    devices: tuple[str, ...]
    seen: tuple[str, ...]


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
        if rows and all(row.seen for row in rows):
            return rows
        if time.monotonic() > deadline:
            told = cluster.kubectl("get", "pods,resourceclaims,events", "-n", NAMESPACE)
            raise errors.ClusterError(f"not all pods ran within {WAIT_S} s:\n{told}")
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
    devices = [result["device"] for one in named for result in _results(claims.get(one))]
    running = pod["status"].get("phase") == "Running"
    log = cluster.kubectl("logs", "-n", NAMESPACE, name) if running else ""
    seen = tuple(line for line in log.splitlines() if re.match(r"GPU \d+:", line))
    whole = seen if len(seen) == len(devices) else ()
    return Row(name, pod["spec"].get("nodeName", ""), tuple(devices), whole)


def _results(claim: Object | None) -> list[Object]:
    allocation = (claim or {}).get("status", {}).get("allocation", {})
    return list(allocation.get("devices", {}).get("results", []))


def _show(rows: list[Row]) -> None:
    lines = [("POD", "NODE", "DEVICE", "SEEN INSIDE (nvidia-smi -L)")]
    for row in rows:
        for index, (device, gpu) in enumerate(zip(row.devices, row.seen, strict=True)):
            first = index == 0
            lines.append((row.pod if first else "", row.node if first else "", device, gpu))
    widths = [max(len(line[column]) for line in lines) + 2 for column in range(3)]
    for line in lines:
        padded = "".join(line[column].ljust(widths[column]) for column in range(3))
        _console.print(padded + line[3], highlight=False, markup=False)
    _console.print(
        "\nThe cluster stays up. Try next:\n"
        "  export KUBECONFIG=$PWD/.cluster/kubeconfig PATH=$PWD/.cluster/bin:$PATH\n"
        "  kubectl -n quickstart get events --sort-by=.lastTimestamp   # why each GPU was chosen\n"
        "  kubectl get resourceslices -o yaml                          # what the nodes publish\n"
        "  kubectl -n quickstart delete pod training                   # free eight GPUs\n"
        "  make demo-down                                              # end the cluster\n",
        highlight=False,
        markup=False,
    )


if __name__ == "__main__":
    sys.exit(main())
