{{/* The Secret of the webhook's certificate, whoever makes it. */}}
{{- define "ration.admissionSecret" -}}
{{- default (printf "%s-tls" (include "ration.component" .)) .values.tls.secretName -}}
{{- end -}}

{{/* Of both configurations: how their caBundle comes to be. */}}
{{- define "ration.admissionAnnotations" -}}
{{- if eq .values.tls.mode "cert-manager" }}
annotations:
  cert-manager.io/inject-ca-from: {{ .root.Release.Namespace }}/{{ include "ration.component" . }}
{{- end }}
{{- end -}}

{{- define "ration.admissionClient" -}}
service:
  name: {{ include "ration.component" . }}
  namespace: {{ .root.Release.Namespace }}
  path: {{ .path }}
{{- if eq .values.tls.mode "secret" }}
caBundle: {{ .values.tls.caBundle | b64enc }}
{{- end }}
{{- end -}}

{{- define "ration.hasConvertedClasses" -}}
{{- if and .Values.deviceClasses.gpu.enabled .Values.deviceClasses.timeSlicing.enabled .Values.deviceClasses.mig.enabled -}}
yes
{{- end -}}
{{- end -}}

{{/* Whether pods are converted; `auto`: where our controller allocates (D21). */}}
{{- define "ration.converts" -}}
{{- $convert := .Values.admission.convert -}}
{{- if and (include "ration.withAdmission" .) (or (eq $convert "on") (and (eq $convert "auto") (eq .Values.allocator "controller"))) -}}
yes
{{- end -}}
{{- end -}}

{{/* Whether NVIDIA's names are converted to our own classes, which have to be there. */}}
{{- define "ration.convertsNvidia" -}}
{{- if and (include "ration.converts" .) .Values.kubeletPlugin.enabled (include "ration.hasConvertedClasses" .) -}}
yes
{{- end -}}
{{- end -}}
