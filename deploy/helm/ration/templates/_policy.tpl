{{/* Whether who asks is the holder of the Lease that is the policy's parameter (D22). */}}
{{- define "ration.holdsLease" -}}
has(request.options.fieldManager) &&
has(params.spec.holderIdentity) && has(params.spec.leaseTransitions) &&
request.options.fieldManager ==
"ration-controller/" + params.spec.holderIdentity + "/" +
string(params.spec.leaseTransitions)
{{- end -}}

{{/* Whether the object to delete was last written by that holder: a DELETE names no manager (D22). */}}
{{- define "ration.stampedByLease" -}}
(has(params.spec.holderIdentity) && has(params.spec.leaseTransitions) &&
oldObject.metadata.?annotations[?"ration.dev/fence"].orValue("") ==
"ration-controller/" + params.spec.holderIdentity + "/" +
string(params.spec.leaseTransitions))
{{- end -}}

{{/* (dict "root" $ "name" "ration-slices"): a policy without parameters, in force. */}}
{{- define "ration.policyBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "ration.labels" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [Deny]
{{- end -}}
