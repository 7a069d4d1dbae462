"""The Helm chart: its values as a model, and what is generated from them."""
