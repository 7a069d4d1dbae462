from driver.controller.scheduler.metrics import queues
from driver.resources import queues as teams
from driver.scheduling.queues import resources as queue_resources
from driver.scheduling.queues import status_types

GIB = 1 << 30


def test_a_queue_is_reported_in_gpus_and_has_no_limit_series_without_limit() -> None:
    stands = status_types.QueueStatus(
        usage=queue_resources.Amounts(gpus=2500, memory=GIB),
        share=0.25,
        fair_share=0.5,
        deserved=teams.Amounts(),
        deserved_share=0.125,
        fleet_gpus=8000,
        pending=3,
        oldest_wait_s=12.0,
        is_starving=True,
    )
    known = {"team": teams.Queue("team", limit=teams.Amounts(gpus=4000)), "": teams.Queue("")}
    found = queues.queue_values({"team": stands, "": stands}, known)
    told = {name: of[("team",)] for name, of in found.items()}
    assert told == {
        "dra_gpu_queue_deserved_gpus": 1,
        "dra_gpu_queue_limit_gpus": 4,
        "dra_gpu_queue_allocated_gpus": 2.5,
        "dra_gpu_queue_allocated_memory_bytes": GIB,
        "dra_gpu_queue_fair_share_gpus": 4,
        "dra_gpu_queue_dominant_share_ratio": 0.25,
        "dra_gpu_queue_borrowed_gpus": 1,
        "dra_gpu_queue_waiting_workloads": 3,
        "dra_gpu_queue_oldest_wait_seconds": 12,
        "dra_gpu_queue_starving": 1,
    }
    assert (queues.NO_QUEUE,) not in found[queues.LIMIT.name]
