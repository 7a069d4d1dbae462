"""The shell of `ration doctor`: asks the API server for all that the checks are shown."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import replace

import yaml

from driver import errors, names
from driver.api import managed_drivers
from driver.cli import permissions
from driver.cli.doctor.checks import components, facts
from driver.kube import client, gvr
from driver.resources import fields
from driver.scheduling.device_ownership import desired

_DRIVERS_FILE = "managed-drivers.yaml"
_GATE = re.compile(r'^kubernetes_feature_enabled\{name="(DRA\w+)"[^}]*\} ([01])\s*$', re.MULTILINE)


class FactCollector:
    """Looks with the caller's rights; what may not be seen is noted, and the rest looked at."""

    def __init__(self, kube: client.KubeClient) -> None:
        self._kube = kube

    def collect(self, driver: str, namespace: str, node: str, now: dt.datetime) -> facts.Facts:
        """Return all facts to check."""
        nodes = f"metadata.name={node}" if node else ""
        slices = f"spec.driver={driver}" + (f",spec.nodeName={node}" if node else "")
        pods = self._list(gvr.PODS, namespace)
        drivers = self._managed_drivers(driver, namespace)
        return facts.Facts(
            driver=driver,
            namespace=namespace,
            now=now,
            version=self._version(),
            nodes=self._list(gvr.NODES, selector=nodes),
            slices=self._list(gvr.RESOURCE_SLICES, selector=slices),
            classes=self._list(gvr.DEVICE_CLASSES),
            leases=self._list(gvr.LEASES, namespace),
            pods=pods,
            daemon_sets=self._list(gvr.DAEMON_SETS),
            webhooks=self._webhooks(),
            node=node,
            events=self._list(gvr.EVENTS, "default", "regarding.kind=Node"),
            given=self._rights(pods, namespace),
            gates=self._gates(),
            managed=self._managed_devices(drivers),
        )

    def _managed_drivers(
        self, own_driver: str, namespace: str
    ) -> tuple[desired.ManagedDriver, ...] | facts.Unreadable:
        """Return the drivers of the controller's ManagedDrivers document; none without one."""
        listing = self._list(gvr.CONFIG_MAPS, namespace, labels=f"{facts.COMPONENT}=controller")
        if isinstance(listing, facts.Unreadable):
            return listing
        texts = (fields.text_map(item, "data").get(_DRIVERS_FILE) for item in listing)
        text = next((text for text in texts if text is not None), None)
        if text is None:
            return ()
        try:
            document = managed_drivers.read(yaml.safe_load(text), _DRIVERS_FILE)
            return desired.parse_drivers(document, own_driver, _DRIVERS_FILE)
        except (errors.BadInput, yaml.YAMLError) as e:
            return facts.Unreadable(f"read {_DRIVERS_FILE}", str(e))

    def _managed_devices(
        self, drivers: tuple[desired.ManagedDriver, ...] | facts.Unreadable
    ) -> facts.ManagedDevices:
        rules = self._rules()
        if isinstance(drivers, facts.Unreadable) or not drivers:
            return facts.ManagedDevices(drivers, rules)
        published: list[fields.Raw] = []
        for driver in drivers:
            listing = self._list(gvr.RESOURCE_SLICES, selector=f"spec.driver={driver.name}")
            if isinstance(listing, facts.Unreadable):
                return facts.ManagedDevices(drivers, rules, listing)
            published += listing
        pods = self._list(gvr.PODS, selector="status.phase=Pending")
        return facts.ManagedDevices(drivers, rules, tuple(published), pods)

    def _rules(self) -> facts.Listing:
        """Return the controller's rules in the newest version that is served."""
        listing: facts.Listing = ()
        for version in gvr.DEVICE_TAINT_RULE_VERSIONS:
            kind = replace(gvr.DEVICE_TAINT_RULES, version=version)
            listing = self._list(kind, labels=f"{names.ALLOCATOR_RULE}=true")
            if not isinstance(listing, facts.Unreadable) or not listing.missing:
                break
        return listing

    def _version(self) -> str | facts.Unreadable:
        try:
            return self._kube.server_version().git
        except errors.ApiError as e:
            return _unseen("get /version", e)

    def _rights(
        self, pods: facts.Listing, namespace: str
    ) -> tuple[facts.Right, ...] | facts.Unreadable:
        """Return the rights of each account of the pods, as the server reviews them."""
        accounts = {
            (component, account)
            for item in (() if isinstance(pods, facts.Unreadable) else pods)
            if (component := facts.labels(item).get(components.COMPONENT, "")) in components.NEEDED
            and (account := fields.text(fields.mapping(item, "spec"), "serviceAccountName"))
        }
        try:
            return tuple(
                self._right(component, account, namespace, needed)
                for component, account in sorted(accounts)
                for needed in components.NEEDED[component]
            )
        except errors.ApiError as e:
            return _unseen("create subjectaccessreviews.authorization.k8s.io", e)

    def _right(
        self, component: str, account: str, namespace: str, needed: tuple[str, str, str]
    ) -> facts.Right:
        group, kind, verb = needed
        plural, _, below = kind.partition("/")
        requested = {"group": group, "resource": plural, "subresource": below, "verb": verb}
        who = f"system:serviceaccount:{namespace}:{account}"
        body = {
            "apiVersion": gvr.ACCESS_REVIEWS.api_version,
            "kind": "SubjectAccessReview",
            "spec": {"user": who, "resourceAttributes": requested},
        }
        answer = self._kube.create(gvr.ACCESS_REVIEWS, body)
        granted = bool(answer.get("status", {}).get("allowed"))
        return facts.Right(component, account, permissions.Right(verb, kind, group), granted)

    def _gates(self) -> Mapping[str, bool]:
        """The feature gates that the server tells in its metrics, which few may read."""
        try:
            text = self._kube.get_text("/metrics")
        except errors.ApiError:
            return {}
        return {name: value == "1" for name, value in _GATE.findall(text)}

    def _webhooks(self) -> facts.Listing:
        obj: list[dict[str, object]] = []
        for kind in (gvr.VALIDATING_WEBHOOKS, gvr.MUTATING_WEBHOOKS):
            listing = self._list(kind)
            if isinstance(listing, facts.Unreadable):
                return listing
            # The items of a list do not say what kind they are.
            named = kind.plural.removesuffix("s")
            obj += ({**item, "kind": named} for item in listing)
        return tuple(obj)

    def _list(
        self,
        kind: gvr.Resource,
        namespace: str | None = None,
        selector: str = "",
        labels: str = "",
    ) -> facts.Listing:
        try:
            answer = self._kube.list(
                kind, namespace=namespace, field_selector=selector, label_selector=labels
            )
            return tuple(answer.items)
        except errors.ApiError as e:
            group = f".{kind.group}" if kind.group else ""
            within = f" -n {namespace}" if namespace else ""
            return _unseen(f"list {kind.plural}{group}{within}", e)


def _unseen(right: str, problem: errors.ApiError) -> facts.Unreadable:
    return facts.Unreadable(
        right,
        str(problem),
        forbidden=isinstance(problem, errors.Forbidden | errors.Unauthorized),
        missing=isinstance(problem, errors.NotFound),
    )
