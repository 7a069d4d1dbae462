"""The opaque configuration a claim may carry. Pure: values in, values out."""
