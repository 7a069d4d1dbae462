"""Whatever the old file says: shares are replicas, and no setting is dropped silently."""

from collections.abc import Iterator
from typing import Any

import hypothesis
import yaml
from hypothesis import strategies as st

from driver import errors
from driver.api import offerings
from driver.cli.migrate import config_files, device_plugin_config, plan
from driver.cli.migrate import settings as migrate_settings
from driver.devices import faces

WORDS = st.sampled_from(
    ["flags", "sharing", "mps", "x", "migStrategy", "resources", "devices", "a.b"]
)
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "none", "all"])
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@st.composite
def sensible(draw: st.DrawFn) -> dict[str, Any]:
    """A configuration that the device plugin takes, with keys that it does not know among them."""
    entry = st.fixed_dictionaries(
        {
            "name": st.sampled_from(["nvidia.com/gpu", "gpu", "nvidia.com/mig-1g.10gb"]),
            "replicas": st.integers(1, 100),
        },
        optional={
            "devices": st.sampled_from(["all", 2, [0], ["1", "0:3"]]),
            "rename": st.just("r"),
        },
    )
    block = st.fixed_dictionaries(
        {"resources": st.lists(entry, min_size=1, max_size=3)},
        optional={"renameByDefault": st.booleans(), "failRequestsGreaterThanOne": st.booleans()},
    )
    body = draw(
        st.fixed_dictionaries(
            {"version": st.just("v1")},
            optional={
                "flags": st.fixed_dictionaries(
                    {}, optional={"migStrategy": st.sampled_from(["none", "single", "mixed"])}
                ),
                "sharing": st.fixed_dictionaries({}, optional={"timeSlicing": block, "mps": block}),
                "imex": st.fixed_dictionaries({}, optional={"required": st.booleans()}),
            },
        )
    )
    table = draw(st.sampled_from(_tables(body)))
    table |= draw(st.dictionaries(st.sampled_from(["madeUp", "other"]), ANYTHING, max_size=2))
    return body


def _tables(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, dict):
        return [value, *(table for inner in value.values() for table in _tables(inner))]
    return [table for inner in value for table in _tables(inner)] if isinstance(value, list) else []


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and value:
        for index, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{index}]")
    elif path:
        yield path


@hypothesis.given(sensible())
def test_every_leaf_is_told_of_once_by_itself_or_by_what_it_is_in(body: dict[str, Any]) -> None:
    setting_findings = migrate_settings.setting_findings(
        body, migrate_settings.SettingContext(device_plugin_config.read(body, ""))
    )
    for leaf in leaves(body):
        reported = [
            setting_finding
            for setting_finding in setting_findings
            if leaf == setting_finding.path
            or leaf.startswith((f"{setting_finding.path}.", f"{setting_finding.path}["))
        ]
        assert len(reported) == 1, leaf
        if "madeUp" in leaf or "other" in leaf:
            assert reported[0].fate is migrate_settings.SettingFate.UNKNOWN


@hypothesis.given(sensible(), st.booleans(), st.booleans())
def test_a_plan_is_made_whose_offerings_can_be_read(
    body: dict[str, Any],
    scheduler: bool,  # noqa: FBT001 - drawn
    per_gpu: bool,  # noqa: FBT001 - drawn
) -> None:
    files = config_files.read_configs({"old": yaml.safe_dump(body)})
    created = plan.build_plan(files, None, plan.PlanOptions(scheduler=scheduler, per_gpu=per_gpu))
    rules = [plan.rule_document(rule) for rule in created.rules]
    assert offerings.read({"rules": rules}, "").rules == created.rules
    assert created.replacements


@hypothesis.given(st.integers(2, 1024), st.booleans())
def test_any_replicas_are_as_many_shares(replicas: int, mps: bool) -> None:  # noqa: FBT001 - drawn
    block = "mps" if mps else "timeSlicing"
    body = {"sharing": {block: {"resources": [{"name": "gpu", "replicas": replicas}]}}}
    files = config_files.read_configs({"old": yaml.safe_dump(body)})
    (rule,) = plan.build_plan(files, None, plan.PlanOptions()).rules
    if mps:
        assert rule.faces == frozenset({faces.Kind.MPS})
        assert (rule.mpsShares, rule.timeSlices) == (min(replicas, 48), None)
    else:
        assert rule.faces == frozenset({faces.Kind.TIME_SLICING})
        assert (rule.mpsShares, rule.timeSlices) == (None, replicas)


@hypothesis.given(ANYTHING)
def test_nonsense_is_refused_in_words_and_never_breaks(document: Any) -> None:
    try:
        plan.build_plan(
            config_files.read_configs({"old": yaml.safe_dump(document)}), None, plan.PlanOptions()
        )
    except errors.BadInput:
        hypothesis.event("refused")
