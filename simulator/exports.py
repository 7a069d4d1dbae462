"""The functions that NVML's library exports, by driver.

They are all of the header, as stubs where nothing is simulated, and none newer than the driver. A
program that is linked against a name the library lacks is ended by the loader; one that asks
dlsym takes a name that is there for a function of this driver.
"""

import functools
import tomllib
from collections.abc import Mapping
from pathlib import Path

_TABLE = Path(__file__).parent / "exports.toml"
_HEADER = "int client_stub(void);\n"
_STUB = (
    '__attribute__((weak, visibility("default"))) int {name}(void) {{ return client_stub(); }}\n'
)


@functools.cache
def first_drivers() -> Mapping[str, int]:
    """The major version of the first driver with each function, by the function's name."""
    table = tomllib.loads(_TABLE.read_text())
    return {name: int(major) for major, has in table.items() for name in has["functions"]}


def exported(driver_major: int) -> tuple[str, ...]:
    """The functions of that driver's library, by name; older drivers than 535 are taken for 535."""
    first = first_drivers()
    known = max(driver_major, min(first.values()))
    return tuple(sorted(name for name, major in first.items() if major <= known))


def stubs() -> str:
    """C source with each function of the table, to be overridden by those that do something."""
    return _HEADER + "".join(_STUB.format(name=name) for name in sorted(first_drivers()))


def version_script(driver_major: int) -> str:
    """Tell the linker which functions that driver's library exports (ld, "VERSION Command")."""
    names = "".join(f"    {name};\n" for name in exported(driver_major))
    return f"{{\nglobal:\n{names}local:\n    *;\n}};\n"
