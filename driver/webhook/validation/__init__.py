"""Validation of claims, templates, classes and pods. Pure: objects in, findings out."""
