"""`ration dump`: what of a cluster decides about GPUs, to simulate it elsewhere."""

import json
from typing import Annotated, Any

import typer
import yaml

from driver.cli import errors as cli_errors
from driver.cli import output as out
from driver.cli.cluster import Kubeconfig

DETAILS = (
    "Contains Nodes, ResourceSlices, DeviceClasses, claims and their templates, running "
    "and pending pods, PersistentVolumes, DeviceTaintRules and PriorityClasses, reduced "
    "to the fields that affect scheduling. Environment, arguments, images, labels and "
    "annotations of pods are omitted, except `ration.dev/defrag`; Secrets and ConfigMaps "
    "are not read. Names of pods, nodes and namespaces, labels of nodes and the "
    "configuration of claims are included: review it before sharing it.\n\n"
    "  ration dump > cluster.yaml\n\n"
    "  ration dump -o json | gzip > cluster.json.gz\n\n"
    "  kubectl get nodes,resourceslices,deviceclasses -o yaml | ration dump --cluster -\n\n"
    "Exit codes: 0 it is printed; 2 the input cannot be read; 3 the API server refused or "
    "was not reached."
)
_Cluster = Annotated[
    str | None,
    typer.Option(
        help="Reduce the objects of files (file, folder, or -) instead of the live cluster.",
        show_default=False,
    ),
]
_Output = Annotated[out.Format, typer.Option("--output", "-o", help="yaml or json")]


def show(
    *,
    cluster: _Cluster = None,
    kubeconfig: Kubeconfig = None,
    output: _Output = out.Format.YAML,
) -> None:
    """Print what of a cluster decides where GPUs go."""
    # Loaded where a cluster is read: other commands need none of it.
    from driver.cli import cluster_state  # noqa: PLC0415
    from driver.cli.simulation import dump, redaction  # noqa: PLC0415

    with cli_errors.exit_on_error():
        result, unseen = cluster_state.read_raw(cluster, kubeconfig)
    for expand_list in unseen:
        typer.echo(f"not seen: {expand_list}", err=True)
    objects = [
        expand_list for expand_list in dump.expand_lists(result) if isinstance(expand_list, dict)
    ]
    retained = [
        short for expand_list in objects if (short := redaction.strip(expand_list)) is not None
    ]
    document: dict[str, Any] = {"apiVersion": "v1", "kind": "List", "items": retained}
    if output is out.Format.JSON:
        print(json.dumps(document, separators=(",", ":")))
    else:
        print(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False), end="")
