"""kube-scheduler's filter plugins about volumes, under their own names."""
