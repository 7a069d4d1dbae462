"""Tests of a scrape of the plugin, with claims prepared on a machine in memory."""

from pathlib import Path

import prometheus_client
import pytest

from driver import errors, ids, names
from driver.devices import health
from driver.kubeletplugin import ports
from driver.kubeletplugin.collectors import claims as claim_figures
from driver.kubeletplugin.collectors import device_usage, gpus, scrape
from driver.runtime.metrics import collector as metric_collector
from driver.runtime.metrics import families
from tests.fakes import clock as fake_clock
from tests.fakes import migclaims
from tests.support.node.activity import OTHER, POD, World
from tests.support.node.shares import GPU, prepare, release, two_shares

GIB = 1 << 30
CLAIM = "dra_claim_name"
WATTS = 400.0


class Scraped(World):
    """A node whose figures are asked."""

    def restart(self) -> None:
        super().restart()
        self.machine.board(self.machine.gpus[0]).power_mw = int(WATTS * 1000)
        self.ails: dict[ids.GpuUuid, tuple[health.Ailment, ...]] = {}
        self.lag_s = 0.0
        self.broken = False

    @property
    def uuid(self) -> str:
        return self.machine.gpus[0].uuid

    def figures(self) -> families.Figures:
        process = self.node.process()
        records = process.executor.records

        def all_records() -> object:
            if self.broken:
                raise errors.NodeFault("read", "a record", "no such disk")
            return records.list_records()

        sources = scrape.Sources(
            all_records,  # type: ignore[arg-type]
            records.write_time,
            lambda: (None, process.gpus.refresh().gpus),
            lambda: self.ails,
            self.watch.readings,
            lambda: self.lag_s,
        )
        time = fake_clock.FakeClock()
        return scrape.ScrapeSource(names.DRIVER, "node-1", sources, time).figures()

    def claim_is(self, family: families.Family) -> dict[str, float]:
        """Return the samples by the claim's name."""
        index = family.labels.index(CLAIM)
        return {labels[index]: value for labels, value in self.figures()[family.name].items()}

    def gpu_is(self, family: families.Family, *labels: str) -> float:
        return self.figures()[family.name][self.uuid, *labels]


@pytest.fixture
def world(tmp_path: Path) -> Scraped:
    return Scraped(tmp_path)


def test_a_gpu_is_described_in_dcgm_exporters_words(world: Scraped) -> None:
    texts = next(texts for texts in world.figures()[gpus.INFO.name] if texts[0] == world.uuid)
    document = dict(zip(gpus.INFO.labels, texts, strict=True))
    assert document["modelName"] == "NVIDIA H100 80GB HBM3"
    assert (document["gpu"], document["device"], document["dra_device_name"]) == (
        "0",
        "nvidia0",
        GPU,
    )
    assert (document["dra_driver_name"], document["dra_pool_name"]) == (names.DRIVER, "node-1")


def test_shared_amounts_of_a_gpu_are_counted_for_every_mode(world: Scraped) -> None:
    world.share(1, POD, gib=20, percent=25)
    world.share(2, OTHER, gib=10, percent=50)
    assert world.gpu_is(gpus.MEMORY_GIVEN, "mps") == 30 * GIB
    assert world.gpu_is(gpus.COMPUTE_GIVEN, "mps") == 0.75
    assert world.gpu_is(gpus.SHARES_GIVEN, "mps") == 2
    assert [world.gpu_is(gpus.SHARES_GIVEN, mode) for mode in device_usage.MODES] == [0, 0, 2, 0]
    assert world.figures()[claim_figures.PREPARED.name]["mps",] == 2


def test_the_part_of_a_gpu_is_the_larger_one_of_memory_and_compute(world: Scraped) -> None:
    world.share(1, POD, gib=20, percent=50)
    world.share(2, OTHER, gib=40, percent=10)
    part = world.claim_is(claim_figures.PART)
    assert part["claim-1"] == 0.5
    assert part["claim-2"] == pytest.approx(40 / 79.65, rel=0.01)


def test_only_who_is_held_to_a_limit_has_one(world: Scraped) -> None:
    world.share(1, POD, face="ts", gib=20)
    assert world.claim_is(claim_figures.MEMORY) == {"claim-1": 20 * GIB}
    assert world.claim_is(claim_figures.LIMIT) == {}


def test_an_mps_share_is_limited_to_what_it_was_given(world: Scraped) -> None:
    world.share(1, POD, gib=20)
    assert world.claim_is(claim_figures.LIMIT) == {"claim-1": 20 * GIB}


def test_power_is_parted_as_the_claims_worked(world: Scraped) -> None:
    world.share(1, POD)
    world.share(2, OTHER)
    world.process(11, 60, gib=4)
    world.process(12, 20, gib=2, pod=OTHER)
    world.look()
    assert world.claim_is(claim_figures.BUSY) == {"claim-1": 0.6, "claim-2": 0.2}
    assert world.claim_is(claim_figures.USED) == {"claim-1": 4 * GIB, "claim-2": 2 * GIB}
    assert world.claim_is(claim_figures.POWER) == {"claim-1": 300, "claim-2": 100}
    assert world.gpu_is(gpus.POWER) == WATTS


def test_the_power_of_an_idle_shared_gpu_is_parted_as_it_was_given(world: Scraped) -> None:
    world.share(1, POD, percent=25)
    world.share(2, OTHER, percent=75)
    world.look()
    assert world.claim_is(claim_figures.POWER) == {"claim-1": 100, "claim-2": 300}


def test_all_the_power_of_a_gpu_that_a_claim_has_alone_is_its_own(world: Scraped) -> None:
    world.whole()
    world.process(11, 10)
    world.look()
    assert world.claim_is(claim_figures.POWER) == {"whole": WATTS}
    assert world.claim_is(claim_figures.PART) == {"whole": 1}


def test_an_unowned_process_is_attributed_to_no_claim(world: Scraped) -> None:
    world.share(1, POD)
    world.share(2, OTHER)
    world.process(11, 60, pod=ids.PodUid("a-stranger"))
    world.process(12, 20, pod=OTHER)
    world.look()
    assert world.claim_is(claim_figures.BUSY) == {"claim-2": 0.2}
    assert world.claim_is(claim_figures.POWER) == {}


def test_a_mig_device_has_its_profile_and_uuid_its_memory_and_no_utilization(
    world: Scraped,
) -> None:
    ref = migclaims.a_claim(world.node, migclaims.HALF)
    migclaims.prepared(world.node, ref)
    world.look()
    (labels,) = world.figures()[claim_figures.INFO.name]
    document = dict(zip(claim_figures.INFO.labels, labels, strict=True))
    assert (document["dra_mig_profile"], document["mode"]) == ("3g.40gb", "mig")
    assert document["dra_mig_device_uuid"].startswith("MIG-")
    assert document["UUID"] == world.uuid
    assert world.claim_is(claim_figures.USED) == {"claim-1": 0}
    assert world.claim_is(claim_figures.LIMIT)["claim-1"] == pytest.approx(40 * GIB, rel=0.02)
    assert not world.figures()[claim_figures.BUSY.name]
    assert not world.figures()[claim_figures.POWER.name]
    assert world.gpu_is(gpus.INSTANCES, "ration") == 1
    assert world.gpu_is(gpus.INSTANCES, "other") == 0


def test_two_shares_of_one_gpu_are_one_series_with_the_sum(world: Scraped) -> None:
    assert isinstance(prepare(world.node, two_shares(40, 20)), ports.Prepared)
    assert world.claim_is(claim_figures.MEMORY) == {"one": 60 * GIB}
    assert world.claim_is(claim_figures.INFO) == {"one": 1}


def test_the_series_of_a_claim_end_with_the_claim(world: Scraped) -> None:
    claim = world.share(1, POD)
    world.process(11, 60)
    world.look()
    release(world.node, claim)
    left = world.figures()
    named = [family.name for family in claim_figures.FAMILIES if CLAIM in family.labels]
    assert {name: dict(left[name]) for name in named} == {name: {} for name in named}


def test_more_claims_than_series_are_counted_and_left_out(
    world: Scraped, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim_figures, "MAX_DEVICES", 1)
    world.share(1, POD)
    world.share(2, OTHER)
    assert list(world.claim_is(claim_figures.INFO)) == ["claim-1"]
    assert world.figures()[claim_figures.OMITTED.name][families.NO_LABELS] == 1


def test_a_taint_is_shown_and_makes_the_gpu_unhealthy_unless_its_effect_is_none(
    world: Scraped,
) -> None:
    uuid = ids.GpuUuid(world.uuid)
    world.ails = {uuid: (health.Ailment(names.TAINT_UNMONITORED, "", "None", ""),)}
    assert world.gpu_is(gpus.AILMENT, names.TAINT_UNMONITORED) == 1
    assert world.gpu_is(gpus.HEALTHY) == 1
    world.ails = {uuid: (health.Ailment(names.TAINT_QUARANTINE, "3", "NoSchedule", ""),)}
    assert world.gpu_is(gpus.HEALTHY) == 0
    assert world.gpu_is(gpus.AILMENT, names.TAINT_UNMONITORED) == 0


def test_records_that_cannot_be_read_cost_the_claims_series_alone(world: Scraped) -> None:
    world.whole()
    assert world.figures()["dra_gpu_plugin_records"]["completed",] == 1
    world.broken = True
    assert world.figures()["dra_gpu_plugin_records_readable"][families.NO_LABELS] == 0
    assert world.claim_is(claim_figures.INFO) == {}
    assert world.gpu_is(gpus.HEALTHY) == 1


def test_every_family_has_figures_and_no_figure_is_without_a_family(world: Scraped) -> None:
    assert world.figures().keys() == {family.name for family in scrape.FAMILIES}


def test_a_fault_in_the_figures_hides_no_other_metric() -> None:
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.Counter("other", "Another.", registry=registry).inc()

    def fail() -> families.Figures:
        raise ValueError("a fault of ours")

    registry.register(metric_collector.FigureCollector((families.Family("mine", "Mine."),), fail))
    decoded = prometheus_client.generate_latest(registry).decode()
    assert "other_total 1.0" in decoded
    assert "# TYPE mine gauge" in decoded


def test_a_scrape_is_text_that_prometheus_takes(world: Scraped) -> None:
    world.share(1, POD)
    registry = prometheus_client.CollectorRegistry()
    registry.register(metric_collector.FigureCollector(scrape.FAMILIES, world.figures))
    text = prometheus_client.generate_latest(registry).decode()
    assert f'UUID="{world.uuid}"' in text
