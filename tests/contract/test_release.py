"""Tests that the files of `make release` fit together: checksums, versions, names."""

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from hack.chart import helm
from hack.cluster import progress, toolchain
from hack.image import oci, trial
from hack.release import checksums, kubectl
from tests.support import docs_commands

pytestmark = pytest.mark.timeout(900)
"""The first test of a machine builds Helm."""
ROOT = Path(__file__).parents[2]
(VERSION,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "release"
    subprocess.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path), check=True)
    return path


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory, key: Path) -> Path:
    out = tmp_path_factory.mktemp("release") / "dist"
    completed = subprocess.run(
        (sys.executable, "-m", "hack.release", f"--out={out}", f"--key={key}"),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return out


@pytest.fixture(scope="module")
def plugin(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the plugin's archive holds."""
    folder = tmp_path_factory.mktemp("plugin")
    with tarfile.open(one(dist, ".tar.gz")) as archive:
        archive.extractall(folder, filter="data")
    return folder


def one(dist: Path, ending: str) -> Path:
    (path,) = dist.glob(f"*{ending}")
    return path


def test_every_file_is_what_the_checksums_say(dist: Path) -> None:
    checked = subprocess.run(("sha256sum", "--check", checksums.SUMS), cwd=dist, check=False)
    assert checked.returncode == 0
    listed = {line.split()[1] for line in (dist / checksums.SUMS).read_text().splitlines()}
    beside = {checksums.SUMS, checksums.SIGNATURE}
    assert listed | beside == {path.name for path in dist.iterdir()}


@pytest.mark.slow
def test_a_release_is_reproducible(dist: Path, tmp_path: Path) -> None:
    command = (sys.executable, "-m", "hack.release", f"--out={tmp_path}")
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / checksums.SUMS).read_text() == (dist / checksums.SUMS).read_text()


# Covers S-6.
def test_the_signature_of_the_checksums_is_that_of_the_key(
    dist: Path, key: Path, tmp_path: Path
) -> None:
    signers = tmp_path / "allowed_signers"
    signers.write_text(f"releases@example.com {key.with_suffix('.pub').read_text()}")
    verify = ("ssh-keygen", "-Y", "verify", "-f", str(signers), "-I", "releases@example.com")
    command = (*verify, "-n", checksums.NAMESPACE, "-s", str(dist / checksums.SIGNATURE))
    sums = (dist / checksums.SUMS).read_bytes()
    assert subprocess.run(command, input=sums, check=False).returncode == 0
    assert subprocess.run(command, input=sums + b"x", check=False).returncode != 0


def test_a_key_that_is_not_there_is_named_and_nothing_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "dist" / "older"
    path.parent.mkdir()
    path.write_text("an older release")
    command = (sys.executable, "-m", "hack.release", f"--out={path.parent}", "--key=nowhere")
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert completed.returncode == 1
    assert completed.stderr == "error: --key nowhere: expected a file with a private key of SSH\n"
    assert path.exists()


def test_the_plugin_runs_where_there_is_no_python(plugin: Path) -> None:
    alone = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/nowhere", "HOME": str(plugin)}
    command = (str(plugin / kubectl.PROGRAM), "version", "-o", "json")
    ran = subprocess.run(command, env=alone, cwd="/", capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    (row,) = json.loads(ran.stdout)
    assert row["ration"] == VERSION


def python(plugin: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the Python of the plugin, which is the image's, on its own."""
    launcher = (plugin / kubectl.PROGRAM).read_text()
    program = plugin / "python"
    program.write_text(launcher.replace("-P -m driver.cli", "-P"))
    program.chmod(0o755)
    command = (str(program), *words)
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", trial.PROGRAMS)
def test_every_program_of_the_image_starts(plugin: Path, name: str) -> None:
    helped = python(plugin, "-m", name, "--help")
    assert helped.returncode == 0, helped.stderr
    assert "usage" in helped.stdout.lower()


def test_every_module_of_the_driver_finds_what_it_imports_in_the_image(plugin: Path) -> None:
    ran = python(plugin, "-c", trial.IMPORTS)
    assert ran.returncode == 0, ran.stderr


def test_the_plugin_takes_no_library_of_the_machine(plugin: Path) -> None:
    maps = python(plugin, "-c", "print(open('/proc/self/maps').read())")
    files = {line.split()[-1] for line in maps.stdout.splitlines() if ".so" in line}
    assert files
    assert all(Path(name).is_relative_to(plugin) for name in files), files


def test_krew_installs_the_plugin_by_the_words_of_the_docs(dist: Path, tmp_path: Path) -> None:
    (line,) = (line for line in commands("From a release") if line.startswith("kubectl krew"))
    words = shlex.split(line)[2:]
    krew = str(toolchain.program("krew", progress.quiet()))
    environment = {**os.environ, "KREW_ROOT": str(tmp_path)}
    subprocess.run((krew, *words), cwd=dist, env=environment, check=True)
    plugin = tmp_path / "bin" / kubectl.PROGRAM
    command = (str(plugin), "version", "--output=json")
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)[0]["ration"] == VERSION


def test_the_package_installs_on_its_own_and_runs(dist: Path, tmp_path: Path) -> None:
    uv = (sys.executable, "-m", "uv")
    subprocess.run((*uv, "venv", "--quiet", tmp_path / "alone"), check=True)
    python = tmp_path / "alone" / "bin" / "python"
    install = (*uv, "pip", "install", "--quiet", f"--python={python}")
    subprocess.run((*install, one(dist, ".whl")), check=True)
    command = (str(python.with_name("ration")), "version", "--output=json")
    ran = subprocess.run(command, cwd="/", capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout)[0]["ration"] == VERSION


def commands(heading: str) -> list[str]:
    """The commands of a section of the page that says how to install."""
    return docs_commands.commands(ROOT / "docs" / "how-to" / "install.md", heading)


def test_krews_manifest_names_the_archive_by_its_digest(dist: Path) -> None:
    archive = one(dist, ".tar.gz")
    spec = yaml.safe_load((dist / "ration.yaml").read_text())["spec"]
    (platform,) = spec["platforms"]
    assert platform["sha256"] == checksums.sha256(archive)
    assert platform["uri"].endswith(f"/{archive.name}")
    with tarfile.open(archive) as packed:
        assert packed.getmember(platform["bin"]).mode == 0o755


def test_the_provenance_names_each_file_the_commit_and_the_locks(dist: Path) -> None:
    statement = json.loads(one(dist, ".provenance.json").read_text())
    subjects = {entry["name"]: entry["digest"]["sha256"] for entry in statement["subject"]}
    beside = {checksums.SUMS, checksums.SIGNATURE, one(dist, ".provenance.json").name}
    assert subjects == {
        path.name: checksums.sha256(path) for path in dist.iterdir() if path.name not in beside
    }
    sources = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    digests = {source["name"]: source["digest"] for source in sources}
    head = subprocess.run(
        ("git", "rev-parse", "HEAD"), cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert digests["ration"] == {"gitCommit": head}
    lock = ROOT / "requirements" / "runtime.lock"
    assert digests["requirements/runtime.lock"] == {"sha256": checksums.sha256(lock)}


def test_the_charts_pods_run_the_image_of_the_release(dist: Path) -> None:
    with tarfile.open(one(dist, ".tar")) as archive:
        index = archive.extractfile("index.json")
        assert index is not None
        (entry,) = json.load(index)["manifests"]
    text = (one(dist, "-install.yaml")).read_text()
    images = set(re.findall(r"^ +image: (.+)$", text, re.MULTILINE))
    references = {oci.reference(image) for image in images}
    assert references == {entry["annotations"]["io.containerd.image.name"]}


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
    results = {(each["name"].lower(), each["version"]) for each in bill["components"]}
    lock = (ROOT / "requirements" / "runtime.lock").read_text()
    locked = set(re.findall(r"^([a-z0-9._-]+)==([^ ]+)", lock, re.MULTILINE))
    assert results == locked
    assert bill["metadata"]["component"]["name"] == "ration"


def test_chart_and_package_have_the_same_version() -> None:
    chart = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())
    # PEP 440 writes 0.1.0a1 where semantic versioning writes 0.1.0-alpha.1.
    assert chart["version"] == chart["appVersion"] == re.sub(r"a(\d+)$", r"-alpha.\1", VERSION)
