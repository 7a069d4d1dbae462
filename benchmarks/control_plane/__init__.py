"""The whole control plane on one machine: pods bound a second, theirs and ours."""
