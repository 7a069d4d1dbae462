{{/* Generated from hack/chart/renamed.py by `make docs`; do not edit. */}}
{{- define "ration.renamed" -}}
{{- range $former, $present := dict "controller.usual" "controller.workloadMix" "controller.writers" "controller.writeWorkers" "controller.refusedSeconds" "controller.unschedulableTimeoutSeconds" "controller.nodes.most" "controller.nodes.maxInFlight" "kubeletPlugin.beside" "kubeletPlugin.allowDevicePlugin, a boolean" "kubeletPlugin.evictFromBroken" "kubeletPlugin.evictOnGpuFault" "kubeletPlugin.usageSeconds" "kubeletPlugin.usageIntervalSeconds" "kubeletPlugin.nvmlPatienceSeconds" "kubeletPlugin.nvmlTimeoutSeconds" "mps.lookSeconds" "mps.desiredStatePollSeconds" "admission.templateSeconds" "admission.templateTtlSeconds" "uninstall.nodeSeconds" "uninstall.nodeTimeoutSeconds" }}
{{- $table := $.Values }}
{{- range initial (splitList "." $former) }}
{{- $table = get $table . | default dict }}
{{- end }}
{{- if hasKey $table (last (splitList "." $former)) }}
{{- fail (printf "%s has been renamed: use %s" $former $present) }}
{{- end }}
{{- end }}
{{- range .Values.controller.nodes.shapes }}
{{- if hasKey . "most" }}
{{- fail "controller.nodes.shapes[].most has been renamed: use maxInFlight" }}
{{- end }}
{{- end }}
{{- end -}}
