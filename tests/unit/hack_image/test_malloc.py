"""Tests that the malloc settings of the local cluster equal those of the published image."""

from pathlib import Path

from hack.cluster import control

DOCKERFILE = Path(__file__).parents[3] / "deploy" / "images" / "Dockerfile"


def test_the_published_image_has_the_same_settings_of_malloc() -> None:
    _, _, last = DOCKERFILE.read_text().rpartition("FROM ")
    words = set(last.split())
    assert {f"{name}={value}" for name, value in control.MALLOC.items()} <= words
