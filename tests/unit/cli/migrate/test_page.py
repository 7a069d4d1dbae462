"""The page shows what the command prints for the files of examples/migrate."""

from pathlib import Path

from typer.testing import CliRunner

from driver.cli.lazy import app
from driver.resources import extended_resources

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "migrate"
PAGES = ROOT / "docs" / "how-to"
SECTIONS = ("Ration's controller", "WHAT PODS", "VALUES OF", "BEFORE THE", "NODE 1")


def printed() -> list[str]:
    words = ["migrate", str(EXAMPLE / "old.yaml"), "--nodes", str(EXAMPLE / "nodes.yaml")]
    return CliRunner().invoke(app, words).output.splitlines()


def test_the_page_shows_what_is_printed() -> None:
    page = (PAGES / "migrate-from-device-plugin.md").read_text().splitlines()
    shown = [line.removeprefix("    ") for line in page]
    lines = printed()
    for section in SECTIONS:
        index = next(n for n, line in enumerate(lines) if line.startswith(section))
        (start,) = [n for n, line in enumerate(page) if line.startswith(f"    {section}")]
        following = (n for n in range(index + 1, len(lines)) if lines[n][:1].isupper())
        sections = [n for n in following if lines[n].split()[0] != "CONFIGURATION"]
        block = lines[index : sections[0]]
        while not block[-1]:
            block.pop()
        assert shown[start : start + len(block)] == block


def test_the_hami_page_describes_the_webhook_correctly() -> None:
    limits = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "3000"}
    pod = {"spec": {"containers": [{"name": "main", "resources": {"limits": limits}}]}}
    removed = [
        entry["path"] for entry in extended_resources.convert(pod).patch if entry["op"] == "remove"
    ]
    assert removed == ["/spec/containers/0/resources/limits/nvidia.com~1gpu"]
