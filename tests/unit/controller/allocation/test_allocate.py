from driver import reasons
from driver.controller import picture
from driver.controller import view as cluster
from driver.controller.allocation import allocate, outcome, words
from driver.resources import claims, slices
from tests import objects, worlds


def decide(
    view: cluster.ClusterView, *asked: claims.Claim, **pod_spec: object
) -> outcome.Placement | outcome.NoFit:
    names = [one.name for one in asked]
    workload = outcome.Workload(objects.pod("pod", *names, **pod_spec), asked)
    return allocate.allocate(view, workload, worlds.DECIDING)


def placed(answer: outcome.Placement | outcome.NoFit) -> outcome.Placement:
    assert isinstance(answer, outcome.Placement), words.no_fit(answer)
    return answer


def refused(answer: outcome.Placement | outcome.NoFit) -> outcome.NoFit:
    assert isinstance(answer, outcome.NoFit)
    return answer


def counts(answer: outcome.Placement | outcome.NoFit) -> dict[reasons.Reason, int]:
    """Why the devices of the only node do not do."""
    (refusal,) = refused(answer).nodes
    return dict(refusal.devices)


def device_names(answer: outcome.Placement) -> list[str]:
    return [pick.device.device for pick in answer.picks]


def test_a_claim_for_one_gpu_gets_the_first_free_one() -> None:
    view = worlds.fleet({"node-a": 8}, worlds.holding("other", "node-a", "gpu-0"))
    answer = placed(decide(view, objects.claim()))
    assert (answer.node, device_names(answer)) == ("node-a", ["gpu-1"])


def test_pack_fills_the_node_that_is_in_use_before_a_fresh_one() -> None:
    view = worlds.fleet({"node-a": 8, "node-b": 8}, worlds.holding("other", "node-b", "gpu-0"))
    assert placed(decide(view, objects.claim())).node == "node-b"


def test_equal_nodes_are_chosen_by_the_lowest_name() -> None:
    assert (
        placed(decide(worlds.fleet({"node-b": 8, "node-a": 8}), objects.claim())).node == "node-a"
    )


def test_a_claim_for_eight_gets_eight_different_ones() -> None:
    claim = objects.claim("claim", objects.a_request(count=8))
    answer = placed(decide(worlds.fleet({"node-a": 8}), claim))
    assert sorted(device_names(answer)) == [f"gpu-{i}" for i in range(8)]


def test_a_claim_for_nine_says_per_node_how_many_fit_and_what_was_lacking() -> None:
    view = worlds.fleet({"node-a": 8, "node-b": 8}, worlds.holding("x", "node-b", "gpu-0", "gpu-1"))
    answer = refused(decide(view, objects.claim("claim", objects.a_request(count=9))))
    assert words.no_fit(answer) == (
        "No node fits. node-a: 8 of 9 devices fit, 1 lacking; "
        "node-b: 6 of 9 devices fit, 3 lacking (2 DeviceTaken)"
    )


def test_two_claims_of_one_pod_land_on_one_node_with_different_gpus() -> None:
    view = worlds.fleet({"node-a": 1, "node-b": 2})
    answer = placed(decide(view, objects.claim("one"), objects.claim("two")))
    assert answer.node == "node-b"
    assert len(set(device_names(answer))) == 2


def test_a_request_with_a_choice_makes_room_for_one_without() -> None:
    only_zero = 'device.attributes["gpu.ration.dev"].uuid == "GPU-gpu-0"'
    claim = objects.claim("c", objects.a_request("any"), objects.a_request("this", 1, only_zero))
    answer = placed(decide(worlds.fleet({"node-a": 2}), claim))
    assert device_names(answer) == ["gpu-1", "gpu-0"]


def test_allocation_mode_all_takes_every_gpu_of_a_free_node() -> None:
    claim = objects.claim("c", objects.a_request(allocationMode="All"))
    view = worlds.fleet({"node-a": 2, "node-b": 3}, worlds.holding("x", "node-b", "gpu-0"))
    answer = placed(decide(view, claim))
    assert (answer.node, len(answer.picks)) == ("node-a", 2)


def test_a_missing_class_blocks_on_every_node() -> None:
    claim = objects.claim("c", objects.a_request(deviceClassName="nope"))
    answer = refused(decide(worlds.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.CLASS_MISSING
    assert "names class nope" in words.no_fit(answer)


def test_a_selector_that_does_not_compile_is_told_with_its_words() -> None:
    claim = objects.claim("c", objects.a_request("gpu", 1, "device.driver =="))
    answer = refused(decide(worlds.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.SELECTOR_UNUSABLE
    assert "request gpu" in answer.detail
    assert "Syntax error" in answer.detail


def test_an_expression_that_is_not_provided_means_not_allocated() -> None:
    text = "device == device"
    answer = refused(
        decide(worlds.fleet({"node-a": 8}), objects.claim("c", objects.a_request("gpu", 1, text)))
    )
    assert answer.blocker is reasons.Reason.SELECTOR_UNUSABLE
    assert "as a value" in answer.detail


def test_a_selector_that_fails_on_a_device_ends_the_search_on_its_node() -> None:
    text = 'device.attributes["gpu.ration.dev"].nope == "x"'
    claim = objects.claim("c", objects.a_request("gpu", 1, text))
    answer = refused(decide(worlds.fleet({"node-a": 2}), claim))
    assert words.no_fit(answer).startswith("No node fits. node-a: SearchBroken (gpu-0: ")


def test_an_unknown_field_of_opaque_configuration_is_refused_before_it_is_written() -> None:
    parameters = {"apiVersion": "resource.ration.dev/v1alpha1", "kind": "GpuConfig", "shape": "x"}
    config = [{"opaque": {"driver": worlds.DRIVER, "parameters": parameters}}]
    answer = refused(decide(worlds.fleet({"node-a": 8}), objects.claim("c", config=config)))
    assert answer.blocker is reasons.Reason.CONFIG_INVALID
    assert "shape: is not a field; expected one of apiVersion, crossNamespace" in answer.detail


def test_configuration_of_another_driver_is_not_read() -> None:
    config = [{"opaque": {"driver": "nic.example.com", "parameters": {"any": "thing"}}}]
    placed(decide(worlds.fleet({"node-a": 8}), objects.claim("c", config=config)))


def test_what_is_not_weighed_is_not_guessed() -> None:
    derived = [{"name": "gpu.ration.dev/big", "expression": "true"}]
    claim = objects.claim("c", objects.a_request(derivedAttributes=derived))
    answer = refused(decide(worlds.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.NOT_SUPPORTED
    assert "gpu.derivedAttributes" in answer.detail


def test_more_than_thirty_two_devices_are_refused_at_once() -> None:
    claim = objects.claim("c", objects.a_request(count=33))
    answer = refused(decide(worlds.fleet({"node-a": 8}), claim))
    assert answer.blocker is reasons.Reason.TOO_MANY_DEVICES


def test_a_device_with_an_untolerated_taint_is_left_alone() -> None:
    sick = objects.a_device("gpu-0")
    sick["taints"] = [*sick["taints"], {"key": "ration.dev/xid", "effect": "NoSchedule"}]
    view = picture.build(
        worlds.DRIVER,
        worlds.caches([objects.node()], [slices.parse(objects.a_slice("node-a", [sick]))]),
    )
    assert counts(decide(view, objects.claim())) == {reasons.Reason.DEVICE_TAINTED: 1}
    tolerant = objects.a_request(tolerations=[{"key": "ration.dev/xid", "operator": "Exists"}])
    assert placed(decide(view, objects.claim("c", tolerant))).picks


def test_a_device_without_the_stored_taint_is_kube_schedulers() -> None:
    bare = objects.a_device("gpu-0")
    del bare["taints"]
    view = picture.build(
        worlds.DRIVER,
        worlds.caches([objects.node()], [slices.parse(objects.a_slice("node-a", [bare]))]),
    )
    assert counts(decide(view, objects.claim())) == {reasons.Reason.DEVICE_NOT_OURS: 1}


def test_a_capacity_request_filters_devices_that_are_not_shared() -> None:
    def asking(amount: str) -> claims.Claim:
        return objects.claim("c", objects.a_request(capacity={"requests": {"memory": amount}}))

    view = worlds.fleet({"node-a": 1})
    assert placed(decide(view, asking("80Gi"))).picks
    assert counts(decide(view, asking("81Gi"))) == {reasons.Reason.CAPACITY_SHORT: 1}


def test_an_incomplete_pool_is_not_used() -> None:
    part = slices.parse(objects.a_slice("node-a", 8, resourceSliceCount=2))
    view = picture.build(worlds.DRIVER, worlds.caches([objects.node()], [part]))
    assert counts(decide(view, objects.claim())) == {reasons.Reason.POOL_INCOMPLETE: 8}


def test_a_node_that_was_refused_a_short_while_ago_is_left_out_with_its_words() -> None:
    workload = outcome.Workload(
        objects.pod(), (objects.claim(),), avoid={objects.node().name: "Insufficient foo"}
    )
    answer = refused(allocate.allocate(worlds.fleet({"node-a": 8}), workload, worlds.DECIDING))
    assert words.no_fit(answer) == "No node fits. node-a: NodeBackedOff (Insufficient foo)"


def test_nodes_that_answer_alike_are_told_together() -> None:
    view = worlds.fleet({f"node-{i}": 1 for i in range(12)})
    answer = refused(decide(view, objects.claim("c", objects.a_request(count=2))))
    assert "and 4 more: 1 of 2 devices fit, 1 lacking" in words.no_fit(answer)


def test_the_search_takes_a_step_a_device_at_most_for_plain_requests() -> None:
    view = worlds.fleet({"node-a": 8})
    answer = placed(decide(view, objects.claim("c", objects.a_request(count=8))))
    assert answer.steps <= 8 * 8


def a_gpu_with_faces(*taken: str) -> cluster.ClusterView:
    """One GPU, whole and time-sliced, of one counter set; `taken` faces are claims'."""

    def face(name: str, kind: str, **more: object) -> objects.Raw:
        use = [{"counterSet": "gpu-0", "counters": {"gpu": {"value": "1"}}}]
        found = objects.a_device(name, consumesCounters=use, **more)
        found["attributes"]["type"] = {"string": kind}
        return found

    devices = objects.a_slice(
        "node-a",
        [face("gpu-0", "gpu"), face("gpu-0-ts", "gpu-share", allowMultipleAllocations=True)],
        resourceSliceCount=2,
        part=1,
    )
    counters = objects.a_slice("node-a", [], resourceSliceCount=2)
    counters["spec"]["sharedCounters"] = [{"name": "gpu-0", "counters": {"gpu": {"value": "1"}}}]
    return picture.build(
        worlds.DRIVER,
        worlds.caches(
            [objects.node()],
            [slices.parse(counters), slices.parse(devices)],
            [worlds.holding("other", "node-a", *taken)] if taken else (),
            found_classes=[
                objects.device_class(),
                objects.device_class("any", f'device.driver == "{worlds.DRIVER}"'),
            ],
        ),
    )


def test_a_whole_gpu_is_not_given_while_another_face_of_it_is_in_use() -> None:
    assert placed(decide(a_gpu_with_faces(), objects.claim())).picks
    answer = decide(a_gpu_with_faces("gpu-0-ts"), objects.claim())
    assert counts(answer)[reasons.Reason.COUNTERS_TAKEN] == 1
