"""`python -m hack.cluster`: the composition root."""

from hack.cluster import cli

if __name__ == "__main__":
    cli.main()
