{{/* (dict "root" $ "stem" "gpu-mps" "values" .Values.deviceClasses.mps
     "attributes" (list (list "type" "mig")) "also" "a CEL expression"? "parameters" (dict ...)?):
     one DeviceClass. */}}
{{- define "ration.deviceClass" -}}
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: {{ include "ration.className" . }}
  labels:
    {{- include "ration.labels" .root | nindent 4 }}
    {{- if include "ration.converts" .root }}
    ration.dev/convert: "true"
    {{- end }}
spec:
  selectors:
    - cel:
        expression: >-
          device.driver == "{{ .root.Values.driverName }}"
          {{- range .attributes }}
          && device.attributes["{{ $.root.Values.driverName }}"].{{ index . 0 }} == "{{ index . 1 }}"
          {{- end }}
          {{- with .also }}
          && ({{ . }})
          {{- end }}
  {{- with .parameters }}
  config:
    - opaque:
        driver: {{ $.root.Values.driverName }}
        parameters:
          {{- toYaml . | nindent 10 }}
  {{- end }}
  {{- with .values.extendedResourceName }}
  extendedResourceName: {{ . }}
  {{- end }}
{{- end -}}

{{/* A MIG profile in the name of an object: `1g.10gb+me` is `1g.10gb.me`. */}}
{{- define "ration.profileName" -}}
{{- . | replace "+" "." | lower -}}
{{- end -}}

{{/* The names of the classes that the release makes, as a CEL list; takes the root. */}}
{{- define "ration.classNames" -}}
{{- $names := list }}
{{- with .Values.deviceClasses }}
{{- range $stem, $values := dict "gpu" .gpu "gpu-timeslice" .timeSlicing "gpu-mps" .mps "gpu-mig" .mig "gpu-slice" .slice }}
{{- if $values.enabled }}
{{- $names = append $names (include "ration.className" (dict "root" $ "stem" $stem "values" $values)) }}
{{- range $values.profiles }}
{{- $stem := printf "gpu-mig-%s" (include "ration.profileName" .profile) }}
{{- $names = append $names (include "ration.className" (dict "root" $ "stem" $stem "values" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $names | uniq | sortAlpha | toJson -}}
{{- end -}}
