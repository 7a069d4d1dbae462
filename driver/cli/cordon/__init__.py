"""`ration cordon`, `uncordon` and `drain`."""
