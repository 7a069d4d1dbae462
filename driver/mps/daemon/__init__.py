"""One MPS control daemon: its process, directories, and reconciliation."""
