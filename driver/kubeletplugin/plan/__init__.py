"""From granted devices and configuration to steps. Pure; one file per sharing mode."""
