"""Explanations and messages for workloads that are pending."""
