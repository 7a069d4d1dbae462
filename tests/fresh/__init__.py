"""Both commands of README.md on a machine without home, cache or checkout of ours."""
