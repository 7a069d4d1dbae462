"""`ration version`."""

import importlib.metadata
import platform

from driver import names
from driver.cli import output as out


def show(output: out.Output = out.Format.TABLE) -> None:
    """Print the version of Ration, of Python, and the driver name it speaks for."""
    row = {
        "ration": importlib.metadata.version("ration"),
        "python": platform.python_version(),
        "driver": names.DRIVER,
    }
    out.show([row], output)
