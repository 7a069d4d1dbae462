"""Kills at moments that nobody chose: whatever was half done is whole, or gone, at the retry."""

import os

import pytest

from tests.fakes import battering

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="MIG and device nodes are root's")
ROUNDS, LONGEST_S = 5, 0.5


@pytest.mark.slow
def test_killed_under_every_face_at_once_it_prepares_and_releases_all_the_same(
    battered: battering.Battered,
) -> None:
    battered.endure(ROUNDS, LONGEST_S)
