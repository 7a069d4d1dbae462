"""From the NVIDIA device plugin's configuration to ours, as a plan. Pure: values in, values out.

`documents` finds the configurations in what people have (ConfigMap, Helm values, ClusterPolicy),
`old` reads one, `fates` says what becomes of each of its settings, `offer` what its GPUs are
offered as, `population` which nodes take it, `classes` what pods ask for then; `plan` puts it
together, `takeover` says how a node changes hands and `render` writes it down.

What the settings mean is read from NVIDIA/k8s-device-plugin v0.20 (`api/config/v1`, README).
"""
