"""Reviews: whatever is sent to the webhook, it answers, and none of it is a fault of ours."""

import json
from collections.abc import Mapping

import prometheus_client

from driver.resources import extended_resources
from driver.webhook import admission_review, metrics, verdicts
from driver.webhook import handler as webhook_handler
from driver.webhook.validation import configs, opaque, pods
from tests.fakes import clock


class _World:
    """`handling.World` of a cluster in which nothing is."""

    def converted_resources(self) -> Mapping[str, str]:
        return {}

    def cluster_facts(self) -> configs.ClusterFacts:
        return configs.ClusterFacts()

    def claim_part(self, _namespace: str, _named: pods.ClaimReference) -> opaque.ConfigPart | None:
        return None

    def namespace_labels(self, _namespace: str) -> Mapping[str, str]:
        return {}

    def is_allocating(self) -> bool:
        return True


def _mutate(request: admission_review.ReviewRequest) -> admission_review.ReviewResponse:
    return verdicts.mutate(request, _World(), lambda *_: None, extended_resources.Classes())


_COUNTED = metrics.Metrics(prometheus_client.CollectorRegistry())
_ANSWERING = tuple(
    webhook_handler.ReviewHandler(name, decision, _COUNTED, clock.FakeClock())
    for name, decision in (
        ("validate", lambda request: verdicts.validate(request, _World())),
        ("mutate", _mutate),
        ("gate", lambda request: verdicts.gate(request, _World())),
    )
)


def check(data: bytes) -> None:
    for answer in _ANSWERING:
        status, body = answer(data)
        assert status in {200, 400}
        if status == 200:
            response = json.loads(body)["response"]
            assert isinstance(response["allowed"], bool)
        else:
            assert body.decode().endswith("\n")
