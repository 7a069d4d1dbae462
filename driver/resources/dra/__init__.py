"""Objects of resource.k8s.io, parsed and rendered."""
