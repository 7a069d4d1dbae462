from collections.abc import Iterator

import pytest

from driver.controller.web.render import charts
from driver.scheduling.reports import model
from tests.support.scenarios import fleets

R = fleets.a_reading()
NODE = R.node("gpu-1") or model.Node(name="")
GPUS = {gpu.index: gpu for gpu in NODE.gpus}


def a_queue(name: str, **fields: str) -> model.Queue:
    return model.Queue(name=name, **fields)


def test_mig_devices_are_drawn_at_their_slices_with_lines_between_slices() -> None:
    drawn = {segment.claim: (segment.start, segment.width) for segment in charts.segments(GPUS[4])}
    assert drawn == {"batch/small": (250, 125), "batch/half": (500, 500)}
    assert charts.ticks(GPUS[4]) == (125, 250, 375, 500, 625, 750, 875)


def test_only_mig_has_lines() -> None:
    assert charts.ticks(GPUS[2]) == ()


def test_allocated_but_unused_devices_are_marked() -> None:
    assert {segment.claim: segment.idle for segment in charts.segments(GPUS[2])} == {
        "nlp/rank": True,
        "nlp/serve": False,
    }


def test_monitoring_claims_are_not_drawn() -> None:
    looks = model.Part(
        claim="a/b", request="r", device="d", mode="monitor", start=0, width=1000, admin=True
    )
    assert charts.segments(GPUS[7].model_copy(update={"parts": (looks,)})) == ()


def test_a_segment_says_in_words_what_it_is() -> None:
    document = {segment.claim: segment.title for segment in charts.segments(GPUS[4])}
    assert document["batch/half"] == "batch/half: MIG 3g.40gb, 39.5 GiB, pod batch/half"


def test_no_segment_lies_beyond_its_gpu() -> None:
    def every() -> Iterator[charts.Segment]:
        for gpu in NODE.gpus:
            yield from charts.segments(gpu)

    assert all(
        segment.start >= 0 and segment.start + segment.width <= charts.WHOLE for segment in every()
    )


def test_queues_are_drawn_to_one_scale_and_what_is_borrowed_is_the_end() -> None:
    drawn = charts.queue_bars(
        [
            a_queue("wide", allocated="4", deserved_share="16", fair_share="8"),
            a_queue("lends", allocated="12", deserved_share="8", borrowed="4"),
            a_queue("lost"),
        ]
    )
    assert drawn["wide"] == charts.QueueBar(250, 0, 1000, 500)
    assert drawn["lends"] == charts.QueueBar(750, 250, 500, None)
    assert drawn["lost"] == charts.QueueBar(0, 0, None, None)


@pytest.mark.parametrize(("part", "whole", "drawn"), [(1, 2, 500), (3, 2, 1000), (1, 0, 0)])
def test_a_share_is_never_more_than_the_whole(part: float, whole: float, drawn: int) -> None:
    assert charts.share(part, whole) == drawn


def test_gpus_reach_each_other_by_the_nearest_way_there_is() -> None:
    def gpu(index: int, **fields: object) -> model.Gpu:
        known_values = {
            "node": "n",
            "name": f"gpu-{index}",
            "mode": "free",
            "allocator": "controller",
        }
        return model.Gpu.model_validate({**known_values, "index": index, **fields})

    reaches = charts.reaches(
        [
            gpu(0, numa=0, pcieRoot="a", nvlink=[1]),
            gpu(1, numa=0, pcieRoot="a", nvlink=[0]),
            gpu(2, numa=0, pcieRoot="a"),
            gpu(3, numa=0, pcieRoot="b"),
            gpu(4, numa=1),
        ]
    )
    assert reaches[0] == ("self", "nvlink", "pcie", "numa", "system")
    assert all(reaches[a][b] == reaches[b][a] for a in range(5) for b in range(5))
