"""`ration`, also `kubectl ration`: one file a command, added by one line of `catalog`."""

import sys

from driver.cli import front


def main() -> None:
    """Run the command line."""
    answer = front.ANSWERS.get(tuple(sys.argv[1:]))
    if answer is not None:
        print(answer())
        return
    # Typer, and what it takes, is loaded only where a command runs.
    from driver.cli import lazy  # noqa: PLC0415

    lazy.app()


if __name__ == "__main__":
    main()
