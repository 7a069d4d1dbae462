"""Kubernetes' CEL for device selectors. Pure: values in, values out."""
