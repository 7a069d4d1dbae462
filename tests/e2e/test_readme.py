"""The claim of README.md gets the event that stands below it."""

import re

import pytest
import yaml

from tests.e2e import playground
from tests.e2e.conftest import ROOT

pytestmark = [pytest.mark.cluster, pytest.mark.smoke]
README = (ROOT / "README.md").read_text()
DEVICE = re.compile(r"gpu-[0-9a-f]{4}-[0-9a-f]{2}-[0-9a-f]{2}-[0-9a-f](-[a-z0-9]+)?")


def example() -> playground.Raw:
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    claim: playground.Raw = yaml.safe_load(text)
    return claim


def event() -> str:
    """Return reason and note as `Playground.events` does, without what differs by cluster."""
    (reason, note) = re.findall(r"^    Normal  (\w+)  (.*\n +.*)$", README, re.MULTILINE)[0]
    return without_names(f"{reason}: {' '.join(note.split())}")


def without_names(text: str) -> str:
    """Return a note without names of devices and nodes, and without the number of idle GPUs."""
    text = re.sub(r"on \S+:", "on NODE:", DEVICE.sub("DEVICE", text))
    return re.sub(r"\d+ of \d+ GPUs were free, \d+ are left", "SOME GPUs", text)


def test_the_claim_of_the_readme_gets_its_event(field: playground.Playground) -> None:
    claim = example()
    field.create(claim, playground.a_pod("reader", claims=(claim["metadata"]["name"],)))
    field.running("reader")
    events = field.told(claim["metadata"]["name"], "Allocated")
    assert [without_names(text) for text in events] == [event()]
