import dataclasses
from pathlib import Path

import pytest

from driver.devices import model
from driver.kubeletplugin.host import discovery, last_inventory
from simulator import machine
from tests.fakes import nvml


@pytest.mark.parametrize("product", ["hgx-h100", "t4"])
def test_the_gpus_of_the_last_process_are_known_as_such_that_cannot_be_read(
    tmp_path: Path, product: str
) -> None:
    file = tmp_path / "inventory.json"
    fake = nvml.FakeNvml(machine.build(product, seed="node-1"))
    inventory = discovery.Discovery(fake, store=last_inventory.LastInventory(file)).refresh()
    later = discovery.Discovery(fake, store=last_inventory.LastInventory(file))
    assert later.current() == model.Inventory(lost=inventory.gpus)
    assert fake.knows == inventory.gpus
    assert later.refresh() == inventory


@pytest.mark.parametrize("text", ["", "{", '{"version":9,"gpus":[]}', '{"gpus":[{"uuid":1}]}'])
def test_a_file_that_says_nothing_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "inventory.json"
    file.write_text(text)
    assert last_inventory.LastInventory(file).read() == model.Inventory()


def test_nothing_is_written_where_nothing_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "inventory.json"
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    gpus = discovery.Discovery(fake, store=last_inventory.LastInventory(file))
    inventory = gpus.refresh()
    previous = file.stat().st_mtime_ns
    gpus.refresh()
    gpus.refresh_gpu(inventory.gpus[3].uuid)
    assert file.stat().st_mtime_ns == previous
    last_inventory.LastInventory(file).write(
        dataclasses.replace(inventory, gpus=inventory.gpus[:1])
    )
    assert file.stat().st_mtime_ns != previous


def test_a_folder_that_cannot_be_written_costs_the_memory_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    memory = last_inventory.LastInventory(blocked / "inventory.json")
    fake = nvml.FakeNvml(machine.build("hgx-h100", seed="node-1"))
    assert len(discovery.Discovery(fake, store=memory).refresh().gpus) == 8
