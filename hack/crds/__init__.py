"""Our own kinds as Kubernetes wants them described, from their models in driver/api. Pure."""
