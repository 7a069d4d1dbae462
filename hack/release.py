"""`python -m hack.release`: everything of a release in one folder, with checksums.

The image's archive, the chart, one file for kubectl, what the image is made of (CycloneDX 1.6), and
SHA256SUMS over all of them.
"""

import hashlib
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
import yaml

from hack.chart import helm
from hack.cluster import releases, shell
from hack.image import build

ROOT = Path(__file__).resolve().parents[1]
SUMS = "SHA256SUMS"
_DEPENDENCIES = ROOT / "requirements" / "runtime.lock"
_TOOLS = ROOT / "requirements" / "release.lock"
app = typer.Typer(help=__doc__, add_completion=False)


@app.command()
def make(
    out: Annotated[Path, typer.Option(help="folder to fill; what is in it is replaced")] = ROOT
    / "dist",
) -> None:
    """Make the release of this checkout."""
    out.mkdir(parents=True, exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    version = yaml.safe_load((helm.CHART / "Chart.yaml").read_text())["appVersion"]
    stem = f"ration-{version}"
    build.write(out / f"{stem}-image-{releases.architecture()}.tar", f"ration:{version}")
    shell.run((str(helm.program()), "package", str(helm.CHART), f"--destination={out}"))
    (out / f"{stem}-install.yaml").write_text(helm.install_yaml())
    bill_of_materials(out / f"{stem}.cdx.json")
    (out / SUMS).write_text(sums(out))
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.name}")


def bill_of_materials(path: Path) -> None:
    """Every locked dependency of the image, with its hashes."""
    with tempfile.TemporaryDirectory(prefix="ration-release-") as scratch:
        shell.run((sys.executable, "-m", "venv", scratch))
        python = Path(scratch) / "bin" / "python"
        uv = (sys.executable, "-m", "uv", "pip", "sync", "--quiet", f"--python={python}")
        shell.run((*uv, "--require-hashes", str(_TOOLS)))
        listing = (Path(scratch) / "bin" / "cyclonedx-py", "requirements", _DEPENDENCIES)
        flags = ("--spec-version=1.6", "--output-format=JSON", "--output-reproducible")
        of = (f"--pyproject={ROOT / 'pyproject.toml'}", f"--output-file={path}")
        shell.run([*map(str, listing), *flags, *of])


def sums(folder: Path) -> str:
    """As `sha256sum --check` reads them."""
    lines = []
    for path in sorted(folder.iterdir()):
        if path.name != SUMS:
            with path.open("rb") as source:
                digest = hashlib.file_digest(source, "sha256").hexdigest()
            lines.append(f"{digest}  {path.name}\n")
    return "".join(lines)


if __name__ == "__main__":
    app()
