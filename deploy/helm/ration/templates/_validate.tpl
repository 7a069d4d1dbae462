{{/* Values that contradict each other; what a single value may be stands in values.schema.json. */}}
{{- define "ration.validate" -}}
{{- include "ration.renamed" . }}
{{- include "ration.validatePlugin" . }}
{{- if and (not .Values.controller.enabled) (eq .Values.allocator "controller") }}
{{- fail "controller.enabled is false and allocator is controller, so nobody would allocate a GPU: set allocator=scheduler, or enable the controller" }}
{{- end }}
{{- if and .Values.controller.web.enabled (eq (int .Values.controller.web.port) (int .Values.controller.metricsPort)) }}
{{- fail "controller.web.port and controller.metricsPort are the same: give the page a port of its own" }}
{{- end }}
{{- if and .Values.kubeletPlugin.enabled .Values.deviceClasses.mps.enabled (not .Values.mps.enabled) }}
{{- fail "mps.enabled is false, so nobody would run MPS daemons: set deviceClasses.mps.enabled=false too" }}
{{- end }}
{{- if and .Values.admission.enabled (eq .Values.admission.tls.mode "secret") (or (not .Values.admission.tls.secretName) (not .Values.admission.tls.caBundle)) }}
{{- fail "admission.tls.mode is secret, so admission.tls.secretName and admission.tls.caBundle have to say which, and who signed it" }}
{{- end }}
{{- if and .Values.kubeletPlugin.enabled .Values.admission.enabled (eq .Values.admission.convert "on") (not (include "ration.hasConvertedClasses" .)) }}
{{- fail "admission.convert gives pods claims of deviceClasses.gpu, timeSlicing and mig, of which one is not enabled: enable them, or leave admission.convert alone" }}
{{- end }}
{{- range .Values.kubeletPlugin.offerings }}
{{- if and (not $.Values.mps.enabled) (has "mps" (default list .faces)) }}
{{- fail "kubeletPlugin.offerings offers faces for MPS and mps.enabled is false, so nobody would run MPS daemons: enable it, or leave mps out of faces" }}
{{- end }}
{{- end }}
{{- range .Values.controller.workloadMix }}
{{- if eq (default "whole" .face) "whole" }}
{{- if .percent }}
{{- fail "controller.workloadMix has percent of a whole GPU: say face (mig, mps, time-slicing), or gpus in its place" }}
{{- end }}
{{- if and .products (hasKey . "gpus") (not .gpus) }}
{{- fail "controller.workloadMix names products of a pod that asks no GPU: leave out products, or gpus: 0" }}
{{- end }}
{{- else if or (not .percent) (ne 1 (int (default 1 .gpus))) (and (hasKey . "gpus") (not .gpus)) }}
{{- fail (printf "controller.workloadMix has face %s, which is percent of one GPU: say percent, and leave out gpus" .face) }}
{{- end }}
{{- end }}
{{- $drivers := list }}
{{- range .Values.controller.managedDrivers }}
{{- if eq .name $.Values.driverName }}
{{- fail (printf "controller.managedDrivers names %s, which is Ration's own driver: leave it out, its kubelet plugin says who allocates" .name) }}
{{- end }}
{{- if has .name $drivers }}
{{- fail (printf "controller.managedDrivers names %s twice: merge the two" .name) }}
{{- end }}
{{- $drivers = append $drivers .name }}
{{- end }}
{{- $shapes := list }}
{{- range .Values.controller.nodes.shapes }}
{{- if has .name $shapes }}
{{- fail (printf "controller.nodes.shapes has two shapes %s: give each a name of its own" .name) }}
{{- end }}
{{- $shapes = append $shapes .name }}
{{- end }}
{{- range $name, $one := dict "controller" .Values.controller "kubeletPlugin" .Values.kubeletPlugin "mps" .Values.mps "admission" .Values.admission }}
{{- if and (not $one.serviceAccount.create) (not $one.serviceAccount.name) }}
{{- fail (printf "%s.serviceAccount.create is false and %s.serviceAccount.name is empty: name the account that is there" $name $name) }}
{{- end }}
{{- end }}
{{- range $name, $labels := dict "commonLabels" .Values.commonLabels "controller.podLabels" .Values.controller.podLabels "kubeletPlugin.podLabels" .Values.kubeletPlugin.podLabels "mps.podLabels" .Values.mps.podLabels "admission.podLabels" .Values.admission.podLabels }}
{{- range $label, $_ := $labels }}
{{- if or (hasPrefix "app.kubernetes.io/" $label) (hasPrefix "helm.sh/" $label) }}
{{- fail (printf "%s holds %s, which the chart sets and selects by: leave it out" $name $label) }}
{{- end }}
{{- end }}
{{- end }}
{{- $accounts := list (include "ration.account" (dict "root" $ "of" "controller" "values" .Values.controller)) (include "ration.account" (dict "root" $ "of" "kubeletplugin" "values" .Values.kubeletPlugin)) (include "ration.account" (dict "root" $ "of" "mps" "values" .Values.mps)) (include "ration.account" (dict "root" $ "of" "admission" "values" .Values.admission)) }}
{{- if ne (len $accounts) (len (uniq $accounts)) }}
{{- fail "two components have the same service account, so each would have the other's rights: give controller, kubeletPlugin, mps and admission serviceAccount names of their own" }}
{{- end }}
{{- include "ration.validateClasses" . }}
{{- end -}}

{{/* Without the kubelet plugin the controller alone is there, and has other drivers' devices alone. */}}
{{- define "ration.validatePlugin" -}}
{{- if not .Values.kubeletPlugin.enabled }}
{{- if not .Values.controller.enabled }}
{{- fail "kubeletPlugin.enabled and controller.enabled are false, so nothing would run: enable one of them" }}
{{- end }}
{{- if eq .Values.allocator "scheduler" }}
{{- fail "kubeletPlugin.enabled is false and allocator is scheduler, so the controller would have no devices: leave allocator alone, and list the drivers whose devices it allocates under controller.managedDrivers" }}
{{- end }}
{{- if not .Values.controller.managedDrivers }}
{{- fail "kubeletPlugin.enabled is false and controller.managedDrivers is empty, so the controller would have no devices: list the drivers whose devices it allocates, or enable the plugin" }}
{{- end }}
{{- if .Values.controller.nodes.enabled }}
{{- fail "controller.nodes.enabled requests nodes for devices that Ration's kubelet plugin publishes, and kubeletPlugin.enabled is false: disable one of them, or enable the other" }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "ration.validateClasses" -}}
{{- $names := list }}
{{- $resources := list }}
{{- range $stem, $one := dict "gpu" .Values.deviceClasses.gpu "gpu-timeslice" .Values.deviceClasses.timeSlicing "gpu-mps" .Values.deviceClasses.mps "gpu-mig" .Values.deviceClasses.mig "gpu-slice" .Values.deviceClasses.slice }}
{{- if $one.enabled }}
{{- $names = append $names (include "ration.className" (dict "root" $ "stem" $stem "values" $one)) }}
{{- $resources = append $resources $one.extendedResourceName }}
{{- range $one.profiles }}
{{- $names = append $names (include "ration.className" (dict "root" $ "stem" (printf "gpu-mig-%s" (include "ration.profileName" .profile)) "values" .)) }}
{{- $resources = append $resources .extendedResourceName }}
{{- end }}
{{- end }}
{{- end }}
{{- if ne (len $names) (len (uniq $names)) }}
{{- fail (printf "two DeviceClasses have the same name: %s" (join ", " (sortAlpha $names))) }}
{{- end }}
{{- $resources = compact $resources }}
{{- if ne (len $resources) (len (uniq $resources)) }}
{{- fail (printf "two DeviceClasses have the same extendedResourceName, and kube-scheduler would use one of them: %s" (join ", " (sortAlpha $resources))) }}
{{- end }}
{{- end -}}
