"""`ration version`, with options; without any `front` answers."""

from driver.cli import front
from driver.cli import output as out

DETAILS = "  ration version\n\n  ration version -o json\n\nExit codes: 0 it is printed."


def show(output: out.Output = out.Format.TABLE) -> None:
    """Print the version of Ration, of Python, and the driver name it speaks for."""
    out.show_rows([front.version()], output)
