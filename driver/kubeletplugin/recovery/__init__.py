"""Recovery at startup, garbage collection, and node cleanup at uninstall."""
