{{/* The page's flags. */}}
{{- define "ration.webArgs" -}}
{{- if not .enabled -}}
- --web-address=
{{- else if .exposed -}}
- --web-address=0.0.0.0:{{ .port }}
- --web-auth=token
{{- else -}}
- --web-address=127.0.0.1:{{ .port }}
{{- end }}
{{- if and .enabled .tlsSecretName }}
- --web-tls-cert-file=/etc/ration-page/tls.crt
- --web-tls-key-file=/etc/ration-page/tls.key
{{- end }}
{{- end -}}
