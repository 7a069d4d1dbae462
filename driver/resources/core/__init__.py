"""Objects of core/v1 and storage.k8s.io, as far as scheduling reads them."""
