"""Commands that fit in one file each."""
