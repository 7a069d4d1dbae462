"""Kubernetes objects as values, read and written. Pure: values in, values out."""
