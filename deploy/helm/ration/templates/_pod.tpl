{{/* What the pods of all components have in common. Each takes (dict "root" $ "of" ... "values" ...);
     "annotations" may hold some of the chart's own, "ports" those beside the metrics'. */}}

{{/* The component's image, field by field over the common one. */}}
{{- define "ration.image" -}}
{{- $image := mergeOverwrite (deepCopy .root.Values.image) (include "ration.imageOwn" . | fromYaml) -}}
{{- if $image.digest -}}
{{- printf "%s@%s" $image.repository $image.digest -}}
{{- else -}}
{{- printf "%s:%s" $image.repository (default .root.Chart.AppVersion $image.tag) -}}
{{- end -}}
{{- end -}}

{{- define "ration.imageOwn" -}}
{{- range $key, $value := .values.image }}
{{- if $value }}
{{ $key }}: {{ $value | quote }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "ration.container" -}}
image: {{ include "ration.image" . }}
imagePullPolicy: {{ default .root.Values.image.pullPolicy .values.image.pullPolicy }}
{{- with .values.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
# Not the default below /dev, which may be the host's.
terminationMessagePath: /run/termination-log
terminationMessagePolicy: FallbackToLogsOnError
ports:
  - name: metrics
    containerPort: {{ .values.metricsPort }}
  {{- range $name, $port := .ports }}
  - name: {{ $name }}
    containerPort: {{ $port }}
  {{- end }}
startupProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 2
  failureThreshold: 60
{{- if not .unprobed }}
livenessProbe:
  httpGet: {path: /healthz, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end }}
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{/* The flags of every process; the component's own follow. */}}
{{- define "ration.args" -}}
- --metrics-address=0.0.0.0:{{ .values.metricsPort }}
- --log-level={{ .values.logLevel }}
{{- end -}}

{{/* Without the chart's version: a pod is not replaced for that. */}}
{{- define "ration.podMetadata" -}}
labels:
  {{- include "ration.selector" . | nindent 2 }}
  {{- with .root.Values.commonLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- with .values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (default (dict) .annotations) .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "ration.podSpec" -}}
serviceAccountName: {{ include "ration.account" . }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.podSecurityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- else }}
{{- if and (has .of (list "kubeletplugin" "mps" "clearing")) .root.Values.gpuNodeLabels (not .values.nodeSelector) }}
affinity:
  nodeAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      nodeSelectorTerms:
        {{- range .root.Values.gpuNodeLabels }}
        {{- $label := splitn "=" 2 . }}
        - matchExpressions:
            {{- if contains "=" . }}
            - {key: {{ $label._0 }}, operator: In, values: [{{ $label._1 | quote }}]}
            {{- else }}
            - {key: {{ $label._0 }}, operator: Exists}
            {{- end }}
        {{- end }}
{{- end }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "ration.serviceAccount" -}}
{{- if .values.serviceAccount.create -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "ration.account" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "ration.componentLabels" . | nindent 4 }}
  {{- with .values.serviceAccount.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# Pods that need the token ask for it themselves.
automountServiceAccountToken: false
{{- end -}}
{{- end -}}

{{/* Only the metrics port is reached from outside; what goes out is not restricted: the API server
     has no name that a policy could hold. */}}
{{- define "ration.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ include "ration.component" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "ration.componentLabels" . | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- include "ration.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - ports:
        - port: metrics
          protocol: TCP
      {{- with .root.Values.networkPolicy.metricsFrom }}
      from:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}
