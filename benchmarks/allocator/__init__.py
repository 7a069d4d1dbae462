"""The allocator's suite: ours beside kube-scheduler's own, in one run, in turn."""
