{{/* (dict "events" "pre-delete" "weight" 0): what makes an object a hook. It is gone when the event
     is over, however that ends. */}}
{{- define "ration.hook" -}}
helm.sh/hook: {{ .events }}
helm.sh/hook-weight: {{ .weight | quote }}
helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded,hook-failed
{{- end -}}

{{/* (dict "root" $ "of" "leave" "like" "controller"): a component whose pods are placed and run as
     those of another, under an account of its own and without a priority, which a quota may guard. */}}
{{- define "ration.leavingLike" -}}
{{- $values := deepCopy (index .root.Values .like) }}
{{- $_ := set $values "serviceAccount" (dict "create" true "name" "" "annotations" dict) }}
{{- $_ := set $values "priorityClassName" "" }}
{{- dict "of" .of "values" $values | toYaml }}
{{- end -}}

{{- define "ration.leavingContainer" -}}
image: {{ include "ration.image" . }}
imagePullPolicy: {{ default .root.Values.image.pullPolicy .values.image.pullPolicy }}
{{- with .values.securityContext }}
securityContext:
  {{- toYaml . | nindent 2 }}
{{- end }}
# Not the default below /dev, which may be the host's.
terminationMessagePath: /run/termination-log
terminationMessagePolicy: FallbackToLogsOnError
{{- end -}}

{{/* (dict "root" $ "name" "ration-leave-stop" "events" "pre-delete" "weight" 0 "args" (list ...)): a
     Job of python -m driver.uninstall. Helm shows what it says. */}}
{{- define "ration.leavingJob" -}}
{{- $like := include "ration.leavingLike" (dict "root" .root "of" "leave" "like" "controller") | fromYaml }}
{{- $of := dict "root" .root "of" "leave" "values" $like.values }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "ration.componentLabels" $of | nindent 4 }}
  annotations:
    {{- include "ration.hook" . | nindent 4 }}
    helm.sh/hook-output-log-policy: hook-succeeded,hook-failed
spec:
  backoffLimit: 0 # a refusal stays one
  activeDeadlineSeconds: 280
  template:
    metadata:
      {{- include "ration.podMetadata" $of | nindent 6 }}
    spec:
      {{- include "ration.podSpec" $of | nindent 6 }}
      automountServiceAccountToken: true
      restartPolicy: Never
      containers:
        - name: leave
          command: [python, -m, driver.uninstall]
          args:
            - {{ index .args 0 }}
            - --driver-name={{ .root.Values.driverName }}
            - --namespace={{ .root.Release.Namespace }}
            - --selector=app.kubernetes.io/name={{ include "ration.name" .root }},app.kubernetes.io/instance={{ .root.Release.Name }}
            {{- with rest .args }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with $like.values.extraEnv }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- include "ration.leavingContainer" $of | nindent 10 }}
{{- end -}}
