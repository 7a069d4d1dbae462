"""NVML, through pynvml: the only room that knows it. Errors leave as DeviceFault."""
