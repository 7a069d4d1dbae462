"""The page of the installed chart, in a browser and over HTTP, behind `kubectl port-forward`."""

import re
from collections.abc import Iterator

import pytest
from selenium.webdriver.common.by import By

from driver.api import crd
from driver.controller.web import views
from driver.kube import client, gvr
from hack import browser as browsers
from hack.chart import helm
from hack.cluster import api
from tests.e2e import page_reader, playground, release

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
cluster = release.cluster
EXPOSED = "--set=controller.web.exposed=true"
_MOST_PAGES = 120
_OURS = {"apiVersion": crd.VERSION}
_ONE_GPU = {"name": "gpu", "exactly": {"deviceClassName": "gpu.ration.dev"}}


@pytest.fixture
def field(cluster: api.Cluster) -> Iterator[playground.Playground]:
    ground = playground.Playground.open(
        cluster, client.KubeClient.connect(cluster.kubeconfig, "ration-e2e")
    )
    try:
        yield ground
    finally:
        release.install()
        ground.close()


def leader(field: playground.Playground) -> str:
    def held() -> str:
        lease = field.kube.get(gvr.LEASES, "ration-controller", helm.NAMESPACE)
        return str(lease["spec"].get("holderIdentity") or "").rpartition("-")[0]

    def leads() -> str:
        name = held()
        return name if name in page_reader.replicas(field) else ""

    return playground.until(leads, 60, "a controller leads")


def test_a_browser_finds_who_has_what_and_why_a_pod_waits(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    amiss = browsers.ensure()
    if amiss:
        pytest.skip(amiss)
    for mode in release.MODES:
        field.running(release.of_mode(field, mode))
    field.create(playground.a_template("many", 9), release.a_pod("too-many", template="many"))
    field.told("too-many", "NoFit", 30)
    (claim,) = [
        claim["metadata"]["name"]
        for claim in field.claims()
        if claim["metadata"]["name"].startswith("gpu-mig-pod")
    ]
    with page_reader.forwarded(leader(field)) as base, browsers.opened() as browser:
        browser.get(f"{base}/claims/{field.namespace}/{claim}")
        walked = (
            (f"dd a[href='/pods/{field.namespace}/gpu-mig-pod']", "gpu-mig-pod"),
            ("dd a[href^='/nodes/']", cluster.nodes()[0].rpartition("-")[0]),
            ("h3 a[href*='/gpus/']", "gpu-"),
        )
        for selector, heading in walked:
            browser.find_element(By.CSS_SELECTOR, selector).click()
            assert browser.find_element(By.TAG_NAME, "h1").text.startswith(heading)
        browser.get(f"{base}/")
        drawn = {
            str(element.get_attribute("class")).rpartition("m-")[2]
            for element in browser.find_elements(By.CSS_SELECTOR, "svg.bar rect.part")
        }
        assert drawn == {"whole", "time-slicing", "mps", "mig"}
        browser.find_element(By.CSS_SELECTOR, f"a[href='/pods/{field.namespace}/too-many']").click()
        assert "NoFit" in browser.find_element(By.CSS_SELECTOR, ".note").text
        assert browser.find_element(By.ID, "whynot").text == "Why not elsewhere"
        assert browsers.said(browser) == []


def crawled(browser: browsers.Browser, base: str, namespace: str) -> set[str]:
    """Every page that links lead to from the first, as paths; none of them says an error.

    Of things with a namespace those of one: the timeline names what is gone, of tests before.
    """
    others = re.compile(rf"/[a-z]+/(?!{namespace}/)e2e-[^/]+/")
    seen: set[str] = set()
    left = ["/"]
    while left and len(seen) < _MOST_PAGES:
        path = left.pop(0)
        if path in seen:
            continue
        seen.add(path)
        browser.get(base + path)
        assert browser.find_elements(By.CSS_SELECTOR, "h1"), path
        assert browsers.said(browser) == [], path
        script = "return [...document.links].map(a => a.href)"
        names = [
            str(entry).partition("#")[0].partition("?")[0]
            for entry in browser.execute_script(script)
        ]
        ours = (name.removeprefix(base) for name in names if name.startswith(base))
        left += [name for name in ours if "/api/" not in name and not others.match(name)]
    return seen


def kinds_of(paths: set[str]) -> set[str]:
    """The names of the views that paths are of."""
    rules = {view.name: re.compile(re.sub(r"<[a-z]+>", "[^/]+", view.rule)) for view in views.VIEWS}
    return {name for path in paths for name, rule in rules.items() if rule.fullmatch(path)}


def test_every_page_is_reached_by_links_and_none_has_an_error(
    field: playground.Playground,
) -> None:
    amiss = browsers.ensure()
    if amiss:
        pytest.skip(amiss)
    queue = {**_OURS, "kind": "Queue", "metadata": {"name": "e2e-page"}}
    queue["spec"] = {"members": [{"namespace": field.namespace}]}
    retained = {**_OURS, "kind": "Reservation", "metadata": {"name": "e2e-page"}}
    retained["spec"] = {"for": {"gang": "later"}, "devices": {"requests": [_ONE_GPU]}}
    field.kube.create(gvr.QUEUES, queue)
    try:
        field.kube.create(gvr.RESERVATIONS, retained, field.namespace)
        field.running(release.of_mode(field, "gpu-mps"))
        with page_reader.forwarded(leader(field)) as base, browsers.opened() as browser:
            names = kinds_of({"/nodes", *crawled(browser, base, field.namespace)})
        assert names == {view.name for view in views.VIEWS} - {views.FLEET.name}
    finally:
        field.kube.delete(gvr.QUEUES, "e2e-page")


def test_a_standby_says_who_leads(field: playground.Playground) -> None:
    name = leader(field)
    (other,) = [text for text in page_reader.replicas(field) if text != name]
    with page_reader.forwarded(other) as base:
        code, document = page_reader.fetch(base, "fleet")
    assert (code, document["leader"]) == (503, name)


def test_an_exposed_page_asks_for_tokens_and_every_replica_answers(
    cluster: api.Cluster, field: playground.Playground
) -> None:
    release.install(EXPOSED)
    cluster.kubectl("apply", "-f", "-", input=page_reader.MANIFEST)
    try:
        tokens = {
            entry: cluster.kubectl("create", "token", entry, "-n", "default").strip()
            for entry in ("reader", "passer-by")
        }
        leader(field)
        playground.until(lambda: len(page_reader.replicas(field)) == 2, 60, "two replicas")
        for pod in page_reader.replicas(field):
            with page_reader.forwarded(pod) as base:
                assert page_reader.fetch(base, "fleet")[0] == 401
                code, document = page_reader.fetch(base, "fleet", tokens["passer-by"])
                assert code == 403
                assert "may not list resourceclaims.resource.k8s.io" in document["error"]

                def answered(base: str = base) -> bool:
                    return page_reader.fetch(base, "fleet", tokens["reader"])[0] == 200

                playground.until(answered, 40, f"{pod} answers")
                assert page_reader.fetch(base, "fleet", tokens["reader"])[1]["gpus"] == 16
    finally:
        cluster.kubectl("delete", "-f", "-", input=page_reader.MANIFEST)
