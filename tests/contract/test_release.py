"""What `make release` makes fits together: checksums, versions, names."""

import json
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from hack import release
from hack.chart import helm

pytestmark = pytest.mark.timeout(900)
"""The first test of a machine builds Helm."""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("release") / "dist"
    command = (sys.executable, "-m", "hack.release", f"--out={out}")
    subprocess.run(command, cwd=release.ROOT, check=True, capture_output=True)
    return out


def one(dist: Path, ending: str) -> Path:
    (found,) = dist.glob(f"*{ending}")
    return found


def test_every_file_is_what_the_checksums_say(dist: Path) -> None:
    checked = subprocess.run(("sha256sum", "--check", release.SUMS), cwd=dist, check=False)
    assert checked.returncode == 0
    listed = {line.split()[1] for line in (dist / release.SUMS).read_text().splitlines()}
    assert listed | {release.SUMS} == {path.name for path in dist.iterdir()}


def test_the_charts_pods_run_the_image_of_the_release(dist: Path) -> None:
    with tarfile.open(one(dist, ".tar")) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
    text = (one(dist, "-install.yaml")).read_text()
    images = set(re.findall(r"^ +image: (.+)$", text, re.MULTILINE))
    assert images == {entry["annotations"]["io.containerd.image.name"]}


def test_the_packaged_chart_renders_what_the_one_file_installs(dist: Path) -> None:
    rendered = subprocess.run(
        (str(helm.program()), "template", helm.RELEASE, str(one(dist, ".tgz")),
         f"--namespace={helm.NAMESPACE}", "--no-hooks"),
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    namespace, *rest = helm.objects(one(dist, "-install.yaml").read_text())
    assert namespace["kind"] == "Namespace"
    assert rest == helm.objects(rendered)


@pytest.mark.slow
def test_the_bill_of_materials_lists_every_locked_dependency(dist: Path) -> None:
    bill = json.loads(one(dist, ".cdx.json").read_text())
    found = {(each["name"].lower(), each["version"]) for each in bill["components"]}
    lock = (release.ROOT / "requirements" / "runtime.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9._-]+)==([^ ]+)", lock, re.MULTILINE))
    assert found == locked
    assert bill["metadata"]["component"]["name"] == "ration"


def test_chart_and_package_have_the_same_version() -> None:
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    project = (release.ROOT / "pyproject.toml").read_text()
    (version,) = re.findall(r'^version = "(.+)"$', project, re.MULTILINE)
    # PEP 440 writes 0.1.0.dev0 where semantic versioning writes 0.1.0-dev.0.
    assert chart["version"] == chart["appVersion"] == re.sub(r"\.dev(\d+)$", r"-dev.\1", version)
