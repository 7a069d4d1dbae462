"""`python -m hack.chart WHAT`: schema, values, install, snapshots."""

from pathlib import Path

import typer

from hack.chart import helm, written

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False)


@app.command()
def schema() -> None:
    """Write values.yaml and values.schema.json from the model of the values."""
    for name, make in written.FILES.items():
        _write(helm.CHART / name, make())


@app.command()
def install(out: Path = helm.ROOT / "deploy" / "install.yaml") -> None:
    """Write one file for `kubectl apply`; it is made for a release, not committed."""
    _write(out, helm.install_yaml())


@app.command()
def snapshot() -> None:
    """Write what the chart renders by default, for tests to compare."""
    _write(helm.SNAPSHOT, helm.template(hooks=True))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)


if __name__ == "__main__":
    app()
