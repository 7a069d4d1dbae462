"""Plain text in columns. Pure."""

from collections.abc import Sequence

_GAP = "   "


def align(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as text: each column as wide as its widest cell, a newline after each line."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "".join(
        _GAP.join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        + "\n"
        for line in lines
    )
