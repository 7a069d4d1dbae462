"""A request that leaves open which kind of part of a GPU it gets has the smallest that does."""

from pathlib import Path

from driver.resources.dra import claims, device_classes
from driver.resources.publish import slice_builder
from driver.scheduling.allocator import dra_allocator, settings
from driver.scheduling.allocator.policies import ranking
from driver.webhook import admission_review
from driver.webhook.validation import claims as validation_claims
from driver.webhook.validation import configs
from hack.chart import helm
from tests.fakes import simulated_pool
from tests.support import snapshots
from tests.support.allocation import NODE, decide, devices, placed, workload
from tests.support.builders import objects, shared_claims

NO_POLICY = settings.Settings(ranking.PolicyChain([]), snapshots.DECIDING.rules)


def mig(name: str, memory: str, **more: object) -> objects.Raw:
    capacity = {"memory": {"value": memory}, "compute": {"value": "40"}}
    return objects.with_values(objects.a_device(name, capacity=capacity), type="mig", **more)


def asking(isolation: str = "limits", count: int = 1, **amounts: str) -> claims.Claim:
    more = {"capacity": {"requests": amounts}} if amounts else {}
    part = objects.a_request("part", count, deviceClassName=snapshots.ANY, **more)
    return objects.claim("c", part, config=[objects.a_config("SliceConfig", isolation=isolation)])


SHARE = objects.a_share_device("mps", shared_claims.MPS)


def test_a_share_of_what_is_asked_goes_before_a_larger_part() -> None:
    view = snapshots.view(objects.a_slice("node-a", [mig("half", "40Gi"), SHARE]))
    assert devices(decide(view, asking(memory="20Gi"))) == ["mps"]
    assert devices(decide(view, asking("hardware", memory="20Gi"))) == ["half"]


def test_a_part_that_is_smaller_goes_before_a_share() -> None:
    view = snapshots.view(objects.a_slice("node-a", [SHARE, mig("small", "5Gi")]))
    assert devices(decide(view, asking())) == ["small"]
    assert devices(decide(view, asking(memory="7Gi"))) == ["mps"]


def test_the_node_where_least_is_taken_is_chosen_and_the_event_says_so() -> None:
    view = snapshots.view(
        objects.a_slice("node-a", [mig("half", "40Gi")]), objects.a_slice("node-b", [SHARE])
    )
    answer = placed(decide(view, asking(memory="20Gi")))
    assert (answer.node, answer.explanation) == (
        "node-b",
        "20Gi of GPU memory, the least that does",
    )
    assert (
        placed(decide(view, asking("hardware", memory="20Gi"))).explanation
        == "the only node that fits"
    )


def test_without_a_policy_the_least_is_taken_all_the_same() -> None:
    view = snapshots.view(objects.a_slice("node-a", [mig("half", "40Gi"), SHARE]))
    answer = dra_allocator.allocate(view, workload(asking(memory="20Gi")), NO_POLICY)
    assert devices(answer) == ["mps"]


def test_the_smallest_fitting_parts_are_taken_first() -> None:
    results = [mig("large", "40Gi"), mig("small", "10Gi"), mig("middle", "20Gi")]
    view = snapshots.view(objects.a_slice("node-a", results))
    assert devices(decide(view, asking("hardware", 2))) == ["small", "middle"]


def test_a_request_that_names_its_kind_is_placed_by_the_policies_alone() -> None:
    """Spread leaves alone the node that is in use, whatever is taken of memory."""
    busy = [mig("small", "10Gi"), objects.a_device("gpu-0")]
    view = snapshots.view(
        objects.a_slice("node-a", busy),
        objects.a_slice("node-b", [mig("large", "40Gi")]),
        taken=[snapshots.holding("x", "node-a", "gpu-0")],
    )
    spread = settings.Settings(ranking.parse_policies("spread"), snapshots.DECIDING.rules)
    text = f'device.attributes["{snapshots.DRIVER}"].type == "mig"'
    plain = objects.claim("c", objects.a_request("part", 1, text, deviceClassName=snapshots.ANY))
    assert placed(dra_allocator.allocate(view, workload(plain), spread)).node == "node-b"
    by_need = asking("hardware")
    assert placed(dra_allocator.allocate(view, workload(by_need), spread)).node == "node-a"


def test_an_alternative_that_is_preferred_goes_before_what_takes_less() -> None:
    large = f'device.attributes["{snapshots.DRIVER}"].profile == "large"'
    ways = (
        objects.a_way("large", 1, large, deviceClassName=snapshots.ANY),
        objects.a_way("any", deviceClassName=snapshots.ANY),
    )
    results = [mig("one", "10Gi", profile="small"), mig("two", "40Gi", profile="large")]
    view = snapshots.view(objects.a_slice("node-a", results))
    config = [objects.a_config("SliceConfig")]
    claim = objects.claim("c", objects.first_available("part", *ways), config=config)
    assert devices(decide(view, claim)) == ["two"]


def test_the_example_gets_what_it_says() -> None:
    """On GPUs of 80 GB: a share, a MIG device of 20 GB at most, and turns or a share."""
    installed = [device_classes.parse(entry) for entry in helm.usual("DeviceClass")]
    pool = simulated_pool.of_machine(NODE, "controller", "hgx-h100")
    rendered = slice_builder.render(pool, slice_builder.Owner(NODE, "uid"), 1)
    more = [device_class for device_class in installed if device_class.name.startswith("gpu-")]
    view = snapshots.view(*rendered, found_classes=more)
    cluster_facts = configs.ClusterFacts(
        snapshots.DRIVER, {device_class.name: device_class for device_class in installed}
    )
    fields: dict[str, str] = {}
    for raw in helm.objects(Path("examples/by-need/gpu-slice.yaml").read_text()):
        if raw["kind"] == "ResourceClaimTemplate":
            kind = admission_review.ObjectKind("resource.k8s.io", "v1", raw["kind"])
            assert validation_claims.check(kind, raw, cluster_facts) == validation_claims.NOTHING
            claim = objects.a_claim(raw["metadata"]["name"])
            claim["spec"] = raw["spec"]["spec"]
            (device,) = devices(decide(view, claims.parse(claim)))
            fields[raw["metadata"]["name"]] = device.split("-", 5)[-1]
    assert fields["limited"] == "mps"
    assert fields["apart"].startswith(("mig-1g20gb", "mig-2g20gb"))
    assert fields["any"] in {"mps", "ts"}
