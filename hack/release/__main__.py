"""`python -m hack.release`: everything of a release in one folder, with checksums."""

import gzip
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import yaml

from hack import scan
from hack.chart import helm
from hack.cluster import errors, releases, shell
from hack.image import build, oci
from hack.release import checksums, kubectl, provenance

ROOT = Path(__file__).resolve().parents[2]
_DEPENDENCIES = ROOT / "requirements" / "runtime.lock"
_TOOLS = ROOT / "requirements" / "release.lock"
app = typer.Typer(add_completion=False)


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="folder to fill; what is in it is replaced")] = ROOT
    / "dist",
    url: Annotated[
        str, typer.Option(help="folder that will serve the files; for krew's manifest")
    ] = "https://ration.dev/releases",
    key: Annotated[
        Path | None, typer.Option(help="a private key of SSH, to sign the checksums with")
    ] = None,
) -> None:
    """Make the release of this checkout.

    The image's archive, the chart, one file for kubectl apply, the plugin of kubectl with krew's
    manifest, the Python package, a bill of materials (CycloneDX 1.6), provenance (SLSA v1) and
    SHA256SUMS over all of them, signed where --key is given.
    """
    try:
        _make(out, url, key)
    except (errors.ClusterError, OSError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(1) from error


def _make(out: Path, url: str, key: Path | None) -> None:
    if key is not None and not key.is_file():
        raise errors.ClusterError(f"--key {key}: expected a file with a private key of SSH")
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    version = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())["appVersion"]
    stem, processor = f"ration-{version}", releases.architecture()
    archive = out / f"{kubectl.PROGRAM}-{version}-linux-{processor}.tar.gz"
    image = out / f"{stem}-image-{processor}.tar"
    typer.echo("1/5  image and plugin of kubectl ...", err=True)
    with build.staged() as files:
        build.write_files(image, f"ration:{version}", files)
        kubectl.write(archive, files)
    typer.echo("2/5  scan of the image ...", err=True)
    _scan(image)
    (out / f"{kubectl.PLUGIN}.yaml").write_text(kubectl.manifest(archive, version, url))
    typer.echo("3/5  chart and install.yaml ...", err=True)
    shell.run((str(helm.program()), "package", str(helm.CHART), f"--destination={out}"))
    _forget_dates(out / f"{stem}.tgz")
    (out / f"{stem}-install.yaml").write_text(helm.install_yaml())
    typer.echo("4/5  Python package ...", err=True)
    wheel = (sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--no-build-isolation")
    shell.run((*wheel, "--no-create-gitignore", f"--out-dir={out}", str(ROOT)))
    typer.echo("5/5  bill of materials, provenance, checksums ...", err=True)
    bill_of_materials(out / f"{stem}.cdx.json")
    provenance.write(out / f"{stem}.provenance.json", version)
    checksums.write(out)
    if key is not None:
        checksums.sign(out, key)
    for path in sorted(out.iterdir()):
        typer.echo(f"{path.stat().st_size:>12,}  {path.name}")


def _scan(image: Path) -> None:
    """Refuse an image whose files are wrong; tell what others know of what is in it.

    What they know is no part of the release: it is another tomorrow.
    """
    files = scan.scan_files(image)
    for report in (files, scan.scan_python_packages(), scan.scan_system_packages(image)):
        for line in report.lines():
            typer.echo(f"     {line}", err=True)
    if files.problems:
        raise errors.ClusterError(f"{image.name}: {len(files.problems)} problems of its files")


def bill_of_materials(path: Path) -> None:
    """Write every locked dependency of the image, with its hashes."""
    with tempfile.TemporaryDirectory(prefix="ration-release-") as scratch:
        shell.run((sys.executable, "-m", "venv", scratch))
        python = Path(scratch) / "bin" / "python"
        uv = (sys.executable, "-m", "uv", "pip", "sync", "--quiet", f"--python={python}")
        shell.run((*uv, "--require-hashes", str(_TOOLS)))
        listing = (Path(scratch) / "bin" / "cyclonedx-py", "requirements", _DEPENDENCIES)
        flags = ("--spec-version=1.6", "--output-format=JSON", "--output-reproducible")
        ends = (f"--pyproject={ROOT / 'pyproject.toml'}", f"--output-file={path}")
        shell.run([*map(str, listing), *flags, *ends])


def _forget_dates(path: Path) -> None:
    """Write a tar of Helm's again without dates, so that one commit makes one chart."""
    with tarfile.open(path) as packed:
        members = [(one, packed.extractfile(one)) for one in packed.getmembers()]
        contents = [(one, source.read()) for one, source in members if source is not None]
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as compressed,
    ):
        oci.pack(compressed, [oci.Entry(one.name, data, one.mode) for one, data in contents])


if __name__ == "__main__":
    app()
