"""`python -m hack.kind`."""

from hack.kind import cli

if __name__ == "__main__":
    cli.main()
