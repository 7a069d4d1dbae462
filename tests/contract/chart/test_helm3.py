"""Helm 3 installs what Helm 4 does."""

import pytest

from hack.chart import helm
from hack.cluster import errors, shell
from tests.contract.chart import rendered
from tests.contract.chart.test_render import PRESETS

pytestmark = rendered.BUILDS_HELM
KUBERNETES = f"--kube-version={rendered.LINES[-1]}.0"


@pytest.mark.parametrize(
    "flags",
    [
        (),
        (f"--values={rendered.EVERYTHING}",),
        *((f"--values={one}",) for one in PRESETS),
    ],
    ids=["default", "everything", *(one.stem for one in PRESETS)],
)
def test_it_renders_the_same_objects_and_hooks(flags: tuple[str, ...]) -> None:
    words = ("template", helm.RELEASE, str(helm.CHART), f"--namespace={helm.NAMESPACE}")
    older = shell.run((str(helm.program("helm3")), *words, KUBERNETES, *flags), timeout=60)
    assert by_name(older) == by_name(helm.template(KUBERNETES, *flags, hooks=True))


def by_name(text: str) -> list[rendered.Object]:
    """Objects in one order: each line of Helm has its own for kinds that it has no place for."""
    return sorted(helm.objects(text), key=lambda one: (one["kind"], one["metadata"]["name"]))


def test_it_finds_nothing_to_lint() -> None:
    for values in (helm.CHART / "values.yaml", rendered.EVERYTHING):
        flags = ("--strict", f"--values={values}")
        shell.run((str(helm.program("helm3")), "lint", str(helm.CHART), *flags), timeout=60)


def test_it_refuses_a_value_that_the_schema_does_not_have() -> None:
    words = ("template", helm.RELEASE, str(helm.CHART), KUBERNETES, "--set=controler.replicas=2")
    with pytest.raises(errors.CommandFailedError, match="controler"):
        shell.run((str(helm.program("helm3")), *words), timeout=60)
