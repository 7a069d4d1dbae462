"""The admission webhook: validates configuration and converts device-plugin pods to claims."""
