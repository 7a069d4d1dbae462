{{/* The node as its pods see it: its whole tree at /host, for the driver's files, /proc and /sys. */}}

{{- define "ration.hostArgs" -}}
- --host-root=/host
{{- if eq .Values.driverRoot "auto" }}
- --driver-root=auto
{{- else }}
- --driver-root={{ printf "/host%s" .Values.driverRoot | trimSuffix "/" }}
{{- end }}
{{- end -}}

{{- define "ration.hostMounts" -}}
- name: host
  mountPath: /host
  readOnly: true
  # A driver container's root appears after we began.
  mountPropagation: HostToContainer
- name: dev
  mountPath: /dev
{{- end -}}

{{- define "ration.hostVolumes" -}}
- name: host
  hostPath: {path: /, type: Directory}
- name: dev
  hostPath: {path: /dev, type: Directory}
{{- end -}}

{{/* The rules of the nodes' offerings, as a list; without the supervisor nothing is offered of MPS. */}}
{{- define "ration.offerings" -}}
{{- $rules := .Values.kubeletPlugin.offerings }}
{{- if not .Values.mps.enabled }}
{{- $rules = prepend $rules (dict "faces" (list "whole" "mig" "time-slicing")) }}
{{- end }}
{{- toYaml $rules }}
{{- end -}}
