"""Trial of an image, whatever runs it: its programs start, its modules find theirs."""

from pathlib import Path
from typing import Final

from hack.image import build

_DRIVER: Final = build.CHECKOUT / "driver"


def _module(path: Path) -> str:
    return ".".join(path.relative_to(build.CHECKOUT).with_suffix("").parts)


MODULES: Final = tuple(
    sorted(_module(path).removesuffix(".__init__") for path in _DRIVER.rglob("*.py"))
)
PROGRAMS: Final = (
    *(name.removesuffix(".__main__") for name in MODULES if name.endswith(".__main__")),
    "driver.kubeletplugin.clearing",
)
"""Modules that pods name after `python -m`; each has --help."""
IMPORTS: Final = (
    f"import importlib\nfor name in {MODULES}: importlib.import_module(name)\n"
    f"print('{len(MODULES)} modules imported')"
)
"""Python code that imports every module of the driver."""
