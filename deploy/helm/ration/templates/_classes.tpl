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
