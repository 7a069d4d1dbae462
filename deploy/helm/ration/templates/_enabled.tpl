{{/* What the release runs: `yes`, or nothing. Each takes the root. Without the kubelet plugin nothing
     of our own devices is there: the controller allocates those of controller.managedDrivers. */}}

{{- define "ration.withMps" -}}
{{- if and .Values.kubeletPlugin.enabled .Values.mps.enabled -}}
yes
{{- end -}}
{{- end -}}

{{/* The webhook judges configurations of our own devices, and converts pods: to claims of our own
     classes, and of other drivers' where their label or admission.convert=on asks for it. */}}
{{- define "ration.withAdmission" -}}
{{- if and .Values.admission.enabled (or .Values.kubeletPlugin.enabled (eq .Values.admission.convert "on")) -}}
yes
{{- end -}}
{{- end -}}

{{/* A webhook that makes its own certificate. */}}
{{- define "ration.ownsCertificate" -}}
{{- if and (include "ration.withAdmission" .) (eq .Values.admission.tls.mode "self") -}}
yes
{{- end -}}
{{- end -}}

{{/* A webhook that gates pods which the controller gives devices of our own. */}}
{{- define "ration.gates" -}}
{{- if and (include "ration.withAdmission" .) .Values.kubeletPlugin.enabled .Values.controller.enabled .Values.admission.gate -}}
yes
{{- end -}}
{{- end -}}

{{/* A controller that labels nodes by what our slices say. */}}
{{- define "ration.labelsNodes" -}}
{{- if and .Values.kubeletPlugin.enabled .Values.controller.labelNodes -}}
yes
{{- end -}}
{{- end -}}

{{/* A controller for whose drivers it makes DeviceTaintRules. */}}
{{- define "ration.managesDrivers" -}}
{{- if and .Values.controller.enabled .Values.controller.managedDrivers -}}
yes
{{- end -}}
{{- end -}}
