{{/* Names of objects. All are cut so that a suffix still fits the 63 characters of a label. */}}

{{- define "ration.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The release's name, with the chart's unless it holds it: a release `ration` gives `ration`. */}}
{{- define "ration.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "ration.name" . -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* (dict "root" $ "of" "controller" "values" .Values.controller): `ration-controller`. */}}
{{- define "ration.component" -}}
{{- printf "%s-%s" (include "ration.fullname" .root) .of -}}
{{- end -}}

{{- define "ration.account" -}}
{{- if .values.serviceAccount.create -}}
{{- default (include "ration.component" .) .values.serviceAccount.name -}}
{{- else -}}
{{- .values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{/* The name that the API server knows a component's pods by. */}}
{{- define "ration.username" -}}
{{- printf "system:serviceaccount:%s:%s" .root.Release.Namespace (include "ration.account" .) -}}
{{- end -}}

{{- define "ration.selector" -}}
app.kubernetes.io/name: {{ include "ration.name" .root }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .of }}
{{- end -}}

{{/* The NodeShapes document; takes controller.nodes. */}}
{{- define "ration.nodeShapes" -}}
{{- dict "apiVersion" "resource.ration.dev/v1alpha1" "kind" "NodeShapes" "ttl" .ttl "maxInFlight" .maxInFlight "shapes" .shapes | toYaml }}
{{- end -}}

{{/* ConfigMap of what live nodes of shapes were seen to have; takes the root. */}}
{{- define "ration.seenShapes" -}}
{{- include "ration.component" (dict "root" . "of" "controller") }}-node-shapes-seen
{{- end -}}

{{/* Of every object; takes the root. */}}
{{- define "ration.labels" -}}
app.kubernetes.io/name: {{ include "ration.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: ration
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Of a component's object. */}}
{{- define "ration.componentLabels" -}}
{{ include "ration.labels" .root }}
app.kubernetes.io/component: {{ .of }}
{{- end -}}

{{/* What follows the first label of the driver's name: `ration.dev` of `gpu.ration.dev`. */}}
{{- define "ration.domain" -}}
{{- regexReplaceAll "^[^.]+\\." .Values.driverName "" -}}
{{- end -}}

{{/* (dict "root" $ "stem" "gpu-mps" "values" .Values.deviceClasses.mps): the class's name. The
     whole GPU's class is named as the driver; as gpu.nvidia.com, MIG's has NVIDIA's name. */}}
{{- define "ration.className" -}}
{{- if .values.name -}}
{{- .values.name -}}
{{- else if eq .stem "gpu" -}}
{{- .root.Values.driverName -}}
{{- else if and (eq .stem "gpu-mig") (eq .root.Values.driverName "gpu.nvidia.com") -}}
mig.nvidia.com
{{- else -}}
{{- printf "%s.%s" .stem (include "ration.domain" .root) -}}
{{- end -}}
{{- end -}}
