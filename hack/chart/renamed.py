"""Values of the chart by their former names. The chart refuses them, with the present name."""

import json
from collections.abc import Mapping
from typing import Any, Final

VALUES: Final[Mapping[str, str]] = {
    "controller.usual": "controller.workloadMix",
    "controller.writers": "controller.writeWorkers",
    "controller.refusedSeconds": "controller.unschedulableTimeoutSeconds",
    "controller.nodes.most": "controller.nodes.maxInFlight",
    "kubeletPlugin.beside": "kubeletPlugin.allowDevicePlugin, a boolean",
    "kubeletPlugin.evictFromBroken": "kubeletPlugin.evictOnGpuFault",
    "kubeletPlugin.usageSeconds": "kubeletPlugin.usageIntervalSeconds",
    "kubeletPlugin.nvmlPatienceSeconds": "kubeletPlugin.nvmlTimeoutSeconds",
    "mps.lookSeconds": "mps.desiredStatePollSeconds",
    "admission.templateSeconds": "admission.templateTtlSeconds",
    "uninstall.nodeSeconds": "uninstall.nodeTimeoutSeconds",
}
"""Present names by former ones."""
_OF_SHAPES = ("most", "maxInFlight")


def allow(schema: dict[str, Any]) -> None:
    """Let the schema pass former names on to the template, whose message names the present ones."""
    for former, present in VALUES.items():
        *path, leaf = former.split(".")
        _properties(schema, path)[leaf] = _renamed(present)
    former, present = _OF_SHAPES
    schema["$defs"]["NodeShape"]["properties"][former] = _renamed(present)


def template() -> str:
    """templates/_renamed.tpl: fails for a former name."""
    pairs = " ".join(json.dumps(word) for pair in VALUES.items() for word in pair)
    former, present = _OF_SHAPES
    return f"""\
{{{{/* Generated from hack/chart/renamed.py by `make docs`; do not edit. */}}}}
{{{{- define "ration.renamed" -}}}}
{{{{- range $former, $present := dict {pairs} }}}}
{{{{- $table := $.Values }}}}
{{{{- range initial (splitList "." $former) }}}}
{{{{- $table = get $table . | default dict }}}}
{{{{- end }}}}
{{{{- if hasKey $table (last (splitList "." $former)) }}}}
{{{{- fail (printf "%s has been renamed: use %s" $former $present) }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- range .Values.controller.nodes.shapes }}}}
{{{{- if hasKey . "{former}" }}}}
{{{{- fail "controller.nodes.shapes[].{former} has been renamed: use {present}" }}}}
{{{{- end }}}}
{{{{- end }}}}
{{{{- end -}}}}
"""


def _properties(schema: dict[str, Any], path: list[str]) -> dict[str, Any]:
    table = schema
    for part in path:
        entry = table["properties"][part]
        table = schema["$defs"][entry["$ref"].rpartition("/")[2]] if "$ref" in entry else entry
    properties: dict[str, Any] = table["properties"]
    return properties


def _renamed(present: str) -> dict[str, Any]:
    return {"description": f"Renamed to {present}.", "deprecated": True}
