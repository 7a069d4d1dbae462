"""The page of the gates, of the table and of what was last kept. Pure."""

from collections.abc import Mapping

from tests.gates import results, table

_HEAD = (
    "# Gates\n\n"
    "What must be green before anybody calls this production: seventeen gates, each with the "
    "commands that show it\nand what they ended with when they last ran. `make gates` runs all "
    "of them, `.venv/bin/python -m tests.gates\n--only 3,11` some; it takes hours, root, and a "
    "machine that does nothing else. What is red stands here as red.\n\n"
    "Nothing here was run on a real GPU: the simulated one stands behind `libnvidia-ml.so.1`, and "
    "all else is real.\n"
)


def page(retained: Mapping[str, results.Result]) -> str:
    """Markdown."""
    return _HEAD + "".join(_gate(gate, retained) for gate in table.GATES)


def _gate(gate: table.Gate, retained: Mapping[str, results.Result]) -> str:
    rows = [_row(command, retained.get(command.text)) for command in gate.commands]
    head = ["| Command | Last time | Of commit |", "|---|---|---|"]
    return f"\n## {gate.number}\n\n{gate.asks}.\n\n" + "\n".join([*head, *rows]) + "\n"


def _row(command: table.Command, last: results.Result | None) -> str:
    if last is None:
        return f"| `{command.text}` | not run yet | |"
    green = "green" if last.code == 0 else f"**red**, exit code {last.code}"
    words = last.last.replace("|", "/").strip("= ")
    return f"| `{command.text}` | {green} after {last.seconds} s: {words} | {last.commit} |"
