import threading
from typing import Any

import pytest

from driver import errors, names
from driver.kube import client, gvr
from driver.resources import extended_resources
from driver.webhook import claim_templates
from tests.fakes import clock
from tests.fakes.apiserver import server
from tests.support.builders import objects

KIND = gvr.RESOURCE_CLAIM_TEMPLATES
SHAPE = {"nvidia.com/gpu": "1"}
POD = {"spec": {"containers": [{"name": "main", "resources": {"limits": SHAPE}}]}}
(TEMPLATE,) = extended_resources.convert(POD).templates
HOUR = 3600.0


@pytest.fixture
def time() -> clock.FakeClock:
    return clock.FakeClock()


@pytest.fixture
def templates(kube: client.KubeClient, time: clock.FakeClock) -> claim_templates.Templates:
    return claim_templates.Templates(kube, time)


def written(api: server.ApiServer) -> list[str]:
    return [request.method for request in api.requests if request.method != "GET"]


def there(api: server.ApiServer, name: str = TEMPLATE.name) -> dict[str, Any]:
    return api.read(KIND, name, "team") or {}


def put(api: server.ApiServer, created: str = "2026-11-21T09:00:00Z") -> None:
    obj: Any = TEMPLATE.render("team")
    obj["metadata"] |= {"uid": "u", "creationTimestamp": created}
    api.put(KIND, obj)


def test_a_template_is_made_once(
    api: server.ApiServer, templates: claim_templates.Templates
) -> None:
    templates.ensure("team", TEMPLATE)
    templates.ensure("team", TEMPLATE)
    assert written(api) == ["POST"]
    assert there(api)["spec"] == TEMPLATE.render("team")["spec"]
    assert there(api)["metadata"]["labels"] == {names.CONVERTED: "true"}


def test_many_at_once_make_one(api: server.ApiServer, templates: claim_templates.Templates) -> None:
    failures: list[Exception] = []

    def ensure() -> None:
        try:
            templates.ensure("team", TEMPLATE)
        except errors.RationError as error:
            failures.append(error)

    threads = [threading.Thread(target=ensure) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(api.all(KIND)) == 1


def test_its_use_is_written_down_now_and_then(
    api: server.ApiServer, templates: claim_templates.Templates, time: clock.FakeClock
) -> None:
    put(api)
    templates.ensure("team", TEMPLATE)
    assert written(api) == []
    time.advance(HOUR / 2)
    templates.ensure("team", TEMPLATE)
    templates.ensure("team", TEMPLATE)
    assert written(api) == ["PATCH"]
    used = there(api)["metadata"]["annotations"][names.LAST_USED]
    assert used == "2026-11-21T09:30:00Z"


def test_another_template_of_that_name_is_not_used(
    api: server.ApiServer, templates: claim_templates.Templates
) -> None:
    (other,) = extended_resources.convert(
        {"spec": {"containers": [{"resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}
    ).templates
    obj: Any = other.render("team")
    obj["metadata"]["name"] = TEMPLATE.name
    api.put(KIND, obj)
    with pytest.raises(errors.BadInput, match="asks something else"):
        templates.ensure("team", TEMPLATE)


def sweeper(
    kube: client.KubeClient, time: clock.FakeClock, *, leads: bool = True
) -> claim_templates.Sweeper:
    return claim_templates.Sweeper(kube, lambda: leads, time)


def converted_pod() -> dict[str, Any]:
    pod = objects.a_pod("web")
    pod["metadata"] |= {"namespace": "team", "labels": {names.CONVERTED: "true"}}
    pod["spec"]["resourceClaims"] = [
        {"name": "ration-0", "resourceClaimTemplateName": TEMPLATE.name}
    ]
    return pod


def test_a_template_goes_when_no_pod_has_been_given_it_for_an_hour(
    api: server.ApiServer, kube: client.KubeClient, time: clock.FakeClock
) -> None:
    put(api)
    assert sweeper(kube, time).sweep() == 0
    time.advance(HOUR + 1)
    assert sweeper(kube, time).sweep() == 1
    assert api.all(KIND) == []


def test_a_template_in_use_or_of_somebody_else_stays(
    api: server.ApiServer, kube: client.KubeClient, time: clock.FakeClock
) -> None:
    put(api)
    other: Any = TEMPLATE.render("team")
    other["metadata"] = {"name": "mine", "namespace": "team", "uid": "m"}
    api.put(KIND, other)
    api.put(gvr.PODS, converted_pod())
    time.advance(10 * HOUR)
    assert sweeper(kube, time).sweep() == 0
    api.remove(gvr.PODS, "web", "team")
    assert sweeper(kube, time).sweep() == 1
    assert [entry["metadata"]["name"] for entry in api.all(KIND)] == ["mine"]


def test_a_template_that_is_given_out_while_it_is_swept_stays(
    api: server.ApiServer,
    kube: client.KubeClient,
    templates: claim_templates.Templates,
    time: clock.FakeClock,
) -> None:
    put(api)
    time.advance(2 * HOUR)
    (seen,) = api.all(KIND)
    templates.ensure("team", TEMPLATE)
    sweeping = sweeper(kube, time)
    assert list(claim_templates.unused_templates([seen], [], time.now())) == [seen]
    assert sweeping._delete(seen) is False
    assert sweeping.sweep() == 0
    assert there(api)


def test_only_the_leader_sweeps_and_a_failure_is_tried_again(
    api: server.ApiServer, kube: client.KubeClient
) -> None:
    class Stopping(clock.FakeClock):
        def wait(self, event: threading.Event, timeout_s: float) -> bool:
            if self.elapsed_s > 3 * HOUR:
                event.set()
            return super().wait(event, timeout_s)

    put(api)
    sweeper(kube, Stopping(), leads=False).run(threading.Event())
    assert api.requests == []
    looks: list[None] = []

    def leads() -> bool:
        """The API server is away at the first look, and back at the second."""
        looks.append(None)
        (api.down, api.up, lambda: None)[min(len(looks), 3) - 1]()
        return True

    claim_templates.Sweeper(kube, leads, Stopping()).run(threading.Event())
    assert len(looks) > 2
    assert api.all(KIND) == []
