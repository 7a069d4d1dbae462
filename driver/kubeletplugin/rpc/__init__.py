"""gRPC servers for the kubelet: DRA, plugin registration, health."""
