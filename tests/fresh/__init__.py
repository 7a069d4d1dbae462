"""Both commands of README.md on a machine that has nothing of ours: no home, no cache, no checkout."""
