"""`ration version`."""

import importlib.metadata
import platform

from driver import names
from driver.cli import output as out

HELP = (
    "Print the version of Ration, of Python, and the driver name it speaks for.\n\n"
    "  ration version\n\n"
    "  ration version -o json\n\n"
    "Exit codes: 0 it is printed."
)


def show(output: out.Output = out.Format.TABLE) -> None:
    """Print the version of Ration, of Python, and the driver name it speaks for."""
    row = {
        "ration": importlib.metadata.version("ration"),
        "python": platform.python_version(),
        "driver": names.DRIVER,
    }
    out.show([row], output)
