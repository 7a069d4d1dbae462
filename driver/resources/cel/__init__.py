"""CEL device selectors as Kubernetes evaluates them."""
