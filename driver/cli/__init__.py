"""The command line `ration`, one file a command."""
