"""The image of another processor on an emulator: `python -m hack.emulated`, or `make arm64`."""
