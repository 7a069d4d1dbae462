"""Tests that the how-to prints what the commands print."""

import re
from pathlib import Path

from tests.support import golden

PAGE = (Path(__file__).parents[3] / "docs" / "how-to" / "see.md").read_text()


def shown(command: str) -> str:
    """The block of text below a command."""
    match = re.search(rf"    {re.escape(command)}\n\n((?:    .*\n|\n)+)", PAGE)
    assert match is not None
    return "\n".join(line.removeprefix("    ") for line in match[1].rstrip().split("\n"))


def recorded(name: str) -> str:
    return (golden.FOLDER / name).read_text().rstrip()


def test_explain_prints_what_the_page_shows() -> None:
    text = shown("ration explain pod big -n nlp")
    assert recorded("explain-pod-waiting.txt").startswith(text)


def test_the_who_command_prints_the_pages_rows() -> None:
    assert shown("ration who gpu-1/gpu-0000-75-00-0") == recorded("who-of-a-gpu.txt")


def test_nodes_prints_what_the_page_shows() -> None:
    assert shown("ration nodes") == recorded("nodes.txt")


def test_idle_prints_what_the_page_shows() -> None:
    assert shown("ration idle") == recorded("idle.txt")
