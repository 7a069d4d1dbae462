"""The templates of converted pods: there before the pod is, and gone when no pod needs them.

A template of ours is named by what it asks, so writing it twice is writing it once. When it was
last given to a pod is written down on it now and then: the sweeper takes only what has not been
given out for a while, and never one that was given out since it looked.
"""

import datetime as dt
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import structlog

from driver import clock, errors, names
from driver.kube import client, gvr
from driver.resources import extended_resources

_log = structlog.get_logger(__name__)
MANAGER = "ration-admission"
_SELECTOR = f"{names.CONVERTED}=true"


@dataclass(frozen=True, slots=True)
class Ages:
    """Seconds: `unused_s` until a template goes, `every_s` between looks.

    A use is written down when the last one that was is older than `noted_s`.
    """

    unused_s: float = 3600.0

    @property
    def every_s(self) -> float:
        """A sixth: what is unused goes soon after its time."""
        return self.unused_s / 6

    @property
    def noted_s(self) -> float:
        """A quarter: a template in use is never close to going."""
        return self.unused_s / 4


class Templates:
    """Makes templates. Thread safe."""

    def __init__(
        self, kube: client.KubeClient, time: clock.Clock, ages: Ages | None = None
    ) -> None:
        self._kube = kube
        self._clock = time
        self._ages = ages or Ages()

    def ensure(self, namespace: str, template: extended_resources.Template) -> None:
        """Have the template there, and known as used now.

        Raises:
            ApiError: it is not there.
            BadInput: another is there by its name.
        """
        result = self._there(namespace, template)
        if not _holds(result.get("spec") or {}, template.render(namespace)["spec"]):
            raise errors.BadInput(
                f"ResourceClaimTemplate {namespace}/{template.name}",
                "asks something else than pods are converted to",
                "it deleted: it is made anew",
            )
        if self._clock.now() - last_used_at(result) > dt.timedelta(seconds=self._ages.noted_s):
            self._note(namespace, template.name)

    def _there(self, namespace: str, template: extended_resources.Template) -> gvr.Object:
        kind, name = gvr.RESOURCE_CLAIM_TEMPLATES, template.name
        try:
            return self._kube.get(kind, name, namespace)
        except errors.NotFound:
            pass
        try:
            body = template.render(namespace)
            return self._kube.create(kind, body, namespace, field_manager=MANAGER)
        except errors.AlreadyExists:  # another replica was faster
            return self._kube.get(kind, name, namespace)

    def _note(self, namespace: str, name: str) -> None:
        used = {names.LAST_USED: clock.rfc3339(self._clock.now())}
        self._kube.patch(
            gvr.RESOURCE_CLAIM_TEMPLATES,
            name,
            {"metadata": {"annotations": used}},
            namespace=namespace,
            field_manager=MANAGER,
        )


class Sweeper:
    """Collects templates of ours that no pod uses, while `leads` says so."""

    def __init__(
        self,
        kube: client.KubeClient,
        leads: Callable[[], bool],
        time: clock.Clock,
        ages: Ages | None = None,
    ) -> None:
        self._kube = kube
        self._leads = leads
        self._clock = time
        self._ages = ages or Ages()

    def run(self, stop: threading.Event) -> None:
        """Look now and then until `stop` is set."""
        while not self._clock.wait(stop, self._ages.every_s):
            if not self._leads():
                continue
            try:
                self.sweep()
            except errors.ApiError as error:
                _log.warning("templates not swept", error=str(error))

    def sweep(self) -> int:
        """Delete what is unused; how many there were.

        Raises:
            ApiError: they cannot be listed.
        """
        kinds = gvr.RESOURCE_CLAIM_TEMPLATES, gvr.PODS
        unused, pods = (self._kube.list(kind, label_selector=_SELECTOR).items for kind in kinds)
        previous = self._clock.now() - dt.timedelta(seconds=self._ages.unused_s)
        return sum(
            self._delete(unused_template)
            for unused_template in unused_templates(unused, pods, previous)
        )

    def _delete(self, template: gvr.Object) -> bool:
        """Exactly as it was seen: one that was given out meanwhile stays."""
        meta = template["metadata"]
        name, namespace = meta["name"], meta["namespace"]
        try:
            self._kube.delete(
                gvr.RESOURCE_CLAIM_TEMPLATES,
                name,
                namespace,
                uid=meta["uid"],
                version=meta["resourceVersion"],
            )
        except (errors.Conflict, errors.NotFound):
            return False
        _log.info("template removed", template=f"{namespace}/{name}")
        return True


def unused_templates(
    unused: Iterable[gvr.Object], pods: Iterable[gvr.Object], previous: dt.datetime
) -> Iterator[gvr.Object]:
    """The templates that no pod names and that were last given out before a time."""
    named = {
        (pod["metadata"]["namespace"], item.get("resourceClaimTemplateName"))
        for pod in pods
        for item in pod.get("spec", {}).get("resourceClaims") or ()
    }
    for item in unused:
        meta = item["metadata"]
        if (meta["namespace"], meta["name"]) not in named and last_used_at(item) < previous:
            yield item


def last_used_at(template: gvr.Object) -> dt.datetime:
    """When a template was last given to a pod, as far as it is written down."""
    meta = template["metadata"]
    stamps = (
        meta.get("creationTimestamp"),
        (meta.get("annotations") or {}).get(names.LAST_USED),
    )
    result = [path for text in stamps if (path := _moment(text)) is not None]
    return max(result, default=dt.datetime.min.replace(tzinfo=dt.UTC))


def _moment(text: object) -> dt.datetime | None:
    try:
        result = dt.datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return result if result.tzinfo else None


def _holds(result: object, desired: object) -> bool:
    """Return whether the desired fields are present; the API server may have added more."""
    if isinstance(desired, Mapping):
        return isinstance(result, Mapping) and all(
            _holds(result.get(key), value) for key, value in desired.items()
        )
    if isinstance(desired, list):
        return (
            isinstance(result, list)
            and len(result) == len(desired)
            and all(map(_holds, result, desired))
        )
    return result == desired
