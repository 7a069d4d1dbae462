"""One file a sharing mode. Pure: grants and configuration in, steps and edits out."""
