"""The host under the plugin: sysfs, cgroups, locks, sockets, discovered GPUs."""
