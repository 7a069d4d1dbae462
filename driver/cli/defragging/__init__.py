"""The parts of `ration defrag`."""
