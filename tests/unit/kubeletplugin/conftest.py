"""Fixtures of the kubelet plugin's unit tests."""

from pathlib import Path

import pytest

from tests.fakes import gpunode


@pytest.fixture
def node(tmp_path: Path) -> gpunode.GpuNode:
    return gpunode.GpuNode(tmp_path)
