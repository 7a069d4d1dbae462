"""The MPS supervisor: desired files in, daemons up, status files out."""
