"""Helm 3 installs what Helm 4 does."""

import pytest

from hack.chart import helm
from hack.cluster import errors, shell
from tests.contract.chart import rendered

pytestmark = rendered.BUILDS_HELM
HELM = "helm3"


@pytest.mark.parametrize(
    "flags",
    [
        (),
        (f"--values={rendered.EVERYTHING}",),
        *((f"--values={path}",) for path in rendered.PRESETS),
    ],
    ids=["default", "everything", *(path.stem for path in rendered.PRESETS)],
)
def test_it_renders_the_same_objects_and_hooks(flags: tuple[str, ...]) -> None:
    older = helm.template(rendered.NEWEST, *flags, hooks=True, line=HELM)
    assert by_name(older) == by_name(helm.template(rendered.NEWEST, *flags, hooks=True))


def by_name(text: str) -> list[rendered.Object]:
    """Objects in one order: each line of Helm has its own for kinds that it has no place for."""
    return sorted(helm.objects(text), key=lambda entry: (entry["kind"], entry["metadata"]["name"]))


def test_it_finds_nothing_to_lint() -> None:
    for values in (helm.CHART / "values.yaml", rendered.EVERYTHING):
        flags = ("--strict", f"--values={values}")
        shell.run((str(helm.program(HELM)), "lint", str(helm.CHART), *flags), timeout=60)


def test_it_refuses_a_value_that_the_schema_does_not_have() -> None:
    with pytest.raises(errors.CommandFailedError, match="controler"):
        helm.template(rendered.NEWEST, "--set=controler.replicas=2", line=HELM)
