import dataclasses
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import flask
import pytest
from flask.testing import FlaskClient

from driver import errors
from driver.controller.web import application, metrics, ports, views
from driver.controller.web.auth import guard, rules, token_reviews
from driver.scheduling.reports import catalog, read_model
from tests.fakes import clock as clocks
from tests.fakes import review_api
from tests.support import web_page
from tests.support.scenarios import fleets

STATIC = Path(application.__file__).parent / "static"
R = web_page.a_reading()
EVERY = (
    "/",
    "/nodes",
    "/nodes?mode=mig&state=used&sort=free",
    *(f"/nodes/{node.name}" for node in R.nodes().items),
    *(f"/nodes/{node.name}/gpus/{gpu.name}" for node in R.nodes().items for gpu in node.gpus),
    "/claims",
    *(f"/claims/{claim.key}" for claim in R.claims().items),
    "/waiting",
    "/pods",
    *(f"/pods/{pod.key}" for pod in R.pods().items),
    "/queues",
    *(f"/queues/{queue.name}" for queue in R.queues().items),
    "/reservations",
    "/reservations/vision/nightly",
    "/shapes",
    "/timeline",
    "/timeline?reason=NoFit",
)


USUAL = web_page.an_application(web_page.Fixed(R))


def client(source: ports.ReportSource | None = None, **more: Any) -> FlaskClient:
    if source is None and not more:
        return USUAL.test_client()
    return web_page.an_application(source or web_page.Fixed(R), **more).test_client()


@pytest.mark.parametrize("path", EVERY)
def test_every_view_is_a_page_and_the_twin_it_names_is_json(path: str) -> None:
    client_value = client()
    page = client_value.get(path)
    assert page.status_code == 200, page.text
    assert page.mimetype == "text/html"
    (twin,) = re.findall(r'rel="alternate" type="application/json" href="([^"]+)"', page.text)
    response = client_value.get(twin.replace("&amp;", "&"))
    assert (response.status_code, response.mimetype) == (200, "application/json")
    assert isinstance(response.json, dict)


def links(page: str) -> set[str]:
    matches = re.findall(r'(?:href|src|hx-get)="(/[^"]*)"', page)
    return {link.replace("&amp;", "&") for link in matches}


def test_every_link_of_every_page_leads_somewhere() -> None:
    client_value = client()
    left, names = ["/"], {"/"}
    while left:
        texts = links(client_value.get(left.pop()).text) - names
        names |= texts
        for path in texts:
            with client_value.get(path) as answer:
                assert answer.status_code == 200, path
        left += [
            text for text in texts if not text.startswith(("/api", "/static")) and "?" not in text
        ]
    assert len(names) > 60


def test_json_is_the_document() -> None:
    reported = client().get("/api/v1/nodes/gpu-1").get_json()
    node = R.node("gpu-1")
    assert node is not None
    assert reported == node.model_dump(mode="json", by_alias=True)
    fleet = client().get("/api/v1/fleet").get_json()
    assert fleet["memoryAllocated"] == R.fleet().memory_allocated
    assert "/api/v1/fleet" in client().get("/api/v1").get_json()["paths"]


def test_no_page_has_a_script_or_a_style_of_its_own() -> None:
    for path in EVERY:
        text = client().get(path).text
        assert "<style" not in text
        assert not re.search(r'<script(?! src="/static/)', text)
        assert not re.search(r'\s(style|on\w+)="', text)
        assert "http://" not in text.replace("http://www.w3.org", "")


def test_every_answer_has_the_headers_that_keep_others_out() -> None:
    for path in ("/", "/api/v1/fleet", "/nodes/x", "/static/page.css", "/api/v1/x"):
        with client().get(path) as answer:
            headers = answer.headers
        assert headers["Content-Security-Policy"].startswith("default-src 'self';")
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
    assert client().get("/").headers["Cache-Control"] == "no-store"


def test_static_files_are_not_sent_twice() -> None:
    client_value = client()
    with client_value.get("/static/htmx.min.js") as first:
        assert len(first.data) > 30_000
    assert "max-age=300" in first.headers["Cache-Control"]
    fields = {"If-None-Match": first.headers["ETag"]}
    with client_value.get("/static/htmx.min.js", headers=fields) as again:
        assert (again.status_code, again.data) == (304, b"")


def test_htmx_is_what_its_readme_says() -> None:
    digest = hashlib.sha256((STATIC / "htmx.min.js").read_bytes()).hexdigest()
    assert digest in (STATIC / "README.md").read_text()


@pytest.mark.parametrize(
    ("path", "code", "words"),
    [
        ("/nodes/nowhere", 404, "there is no node nowhere with GPUs of ours"),
        ("/nodes/gpu-1/gpus/x", 404, "there is no GPU x on node gpu-1"),
        ("/claims/a/b", 404, "there is no ResourceClaim a/b"),
        ("/pods/a/b", 404, "there is no pod a/b"),
        ("/queues/x", 404, "there is no Queue x"),
        ("/reservations/a/b", 404, "there is no Reservation a/b"),
        ("/nonsense", 404, "there is no such page"),
        ("/nodes?limit=x", 400, "query: limit is 'x'"),
        ("/fleet?x=1", 400, "query: x is not known; there are continue, limit, live"),
    ],
)
def test_an_error_is_one_line_in_json_and_words_on_a_page(path: str, code: int, words: str) -> None:
    response = client().get(f"/api/v1{path}")
    assert response.status_code == response.get_json()["code"] == code
    assert response.get_json()["error"].startswith(words)
    assert "\n" not in response.get_json()["error"]
    page = client().get(path if path != "/fleet?x=1" else "/nodes?x=1")
    assert (page.status_code, page.mimetype) == (code, "text/html")
    assert 'id="live"' in page.text


def test_foreign_text_is_escaped() -> None:
    raw = fleets.raw()
    for entry in raw:
        if entry["kind"] == "Pod" and entry["metadata"]["name"] == "big":
            for condition in entry["status"]["conditions"]:
                condition["message"] = "<script>alert(1)</script> `<b>`"
    page = client(web_page.Fixed(web_page.a_reading(raw))).get("/pods/nlp/big").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "<img" not in client().get("/nodes/<img src=x>").text.split("<main")[1]


def test_only_reading_is_answered() -> None:
    client_value = client()
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = client_value.open("/api/v1/fleet", method=method)
        assert answer.status_code == 405
        assert answer.get_json()["error"] == "the page is for reading: expected GET or HEAD"
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
    assert client_value.head("/").status_code == 200
    assert client_value.head("/").data == b""


def test_a_standby_says_who_leads() -> None:
    client_value = client(
        web_page.Fixed(ports.NotLeader("this replica stands by; x-1 leads", "x-1"))
    )
    response = client_value.get("/api/v1/fleet")
    assert (response.status_code, response.get_json()["leader"]) == (503, "x-1")
    page = client_value.get("/")
    assert page.status_code == 503
    assert "kubectl port-forward pod/x-1 8081" in page.text


def test_a_standby_that_others_reach_has_the_leader_answer_and_never_twice() -> None:
    request = []

    def forward(path: str, token: str) -> flask.Response | None:
        request.append((path, token))
        return flask.Response("from the leader", 200)

    away = web_page.Fixed(ports.NotLeader("this replica stands by"))
    client_value = client(away, forward=forward)
    answer = client_value.get("/claims?name=x", headers={"Authorization": "Bearer good"})
    assert answer.text == "from the leader"
    assert request == [("/claims?name=x", "good")]
    assert client_value.get("/claims", headers={guard.FORWARDED: "1"}).status_code == 503
    assert client(away, forward=lambda *_: None).get("/").status_code == 503


def test_an_empty_cluster_says_so_in_words() -> None:
    client_value = client(web_page.Fixed(fleets.a_reading([])))
    document = {
        "/": "No node publishes GPUs of gpu.ration.dev yet.",
        "/waiting": "No pending pods",
        "/pods": "No pod asks for a GPU yet.",
        "/claims": "No claim asks for a GPU yet.",
        "/queues": "There are no queues",
        "/reservations": "There are no reservations.",
        "/shapes": "Node provisioning is disabled",
        "/timeline": "Nothing has happened",
        "/?mode=mig": "No node has a GPU like that.",
        "/claims?name=x": "No claim is called like that.",
    }
    for path, words in document.items():
        page = client_value.get(path)
        assert page.status_code == 200
        assert words in page.text


def test_without_own_gpus_the_page_names_the_managed_drivers() -> None:
    reading = fleets.a_reading([fleets.an_allocator_rule("gpu.example.com")])
    page = client(web_page.Fixed(reading)).get("/")
    assert "The controller allocates devices of gpu.example.com" in page.text
    assert "kubelet plugin" not in page.text


def test_stale_data_is_announced_at_the_top() -> None:
    values = ("no word for 120 s on pods",)
    objects = dataclasses.replace(fleets.objects_of([]), missing=values)
    client_value = client(
        web_page.Fixed(catalog.Reports(read_model.ClusterModel(objects), fleets.AT))
    )
    assert "no word for 120 s on pods" in client_value.get("/").text


def test_a_fault_of_ours_is_a_page_too() -> None:
    class Broken:
        def read(self) -> catalog.Reports:
            raise RuntimeError("secret")

    for path in ("/", "/api/v1/fleet"):
        answer = client(Broken()).get(path)
        assert answer.status_code == 500
        assert "secret" not in answer.text


def test_a_page_of_ours_is_read_by_its_own_name_only() -> None:
    client_value = client()
    rebound = client_value.get("/api/v1/fleet", headers={"Host": "rebound.example.com:8081"})
    assert rebound.status_code == 403
    assert rebound.get_json()["error"] == (
        "rebound.example.com:8081 is not this page's name: use localhost"
    )
    assert client_value.get("/", headers={"Host": "127.0.0.1:9"}).status_code == 200


def test_a_page_stands_still_where_that_is_asked() -> None:
    client_value = client()
    assert 'hx-trigger="every 5s"' in client_value.get("/").text
    assert "hx-trigger" not in client_value.get("/?live=off").text


def guarded(api: review_api.Api | None = None) -> FlaskClient:
    token_reviewer = token_reviews.TokenReviewer(api or review_api.Api(), clocks.FakeClock())
    return client(guarded=guard.Guard(token_reviewer, local=False, secure=True))


def test_a_guarded_page_asks_for_a_token() -> None:
    client_value = guarded()
    response = client_value.get("/api/v1/fleet")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == 'Bearer realm="ration"'
    assert response.get_json()["error"] == rules.NO_TOKEN.why
    page = client_value.get("/claims?name=x")
    assert page.status_code == 401
    assert 'name="next" value="/claims?name=x"' in page.text
    with client_value.get("/static/page.css") as style:
        assert style.status_code == 200
    assert client_value.get("/nonsense").status_code == 401


def test_a_good_token_reads_and_a_bad_one_does_not() -> None:
    client_value = guarded()
    for path in ("/", "/api/v1/fleet"):
        assert client_value.get(path, headers={"Authorization": "Bearer good"}).status_code == 200
        assert client_value.get(path, headers={"Authorization": "Bearer bad"}).status_code == 401


def test_a_refused_user_is_told_the_missing_right() -> None:
    api = review_api.Api()
    api.may = False
    answer = guarded(api).get("/api/v1/fleet", headers={"Authorization": "Bearer good"})
    assert answer.status_code == 403
    assert answer.get_json()["error"] == (
        "ada may not list resourceclaims.resource.k8s.io in all namespaces"
    )


def test_the_form_keeps_a_token_in_a_cookie_that_no_script_reads() -> None:
    client_value = guarded()
    bad = client_value.post("/login", data={"token": "bad", "next": "/claims"})
    assert bad.status_code == 401
    assert "The token is not valid" in bad.text
    assert "Set-Cookie" not in bad.headers
    good = client_value.post("/login", data={"token": " good ", "next": "/claims"})
    assert (good.status_code, good.headers["Location"]) == (303, "/claims")
    cookie = good.headers["Set-Cookie"]
    assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= {
        part.strip() for part in cookie.split(";")
    }
    assert "Expires" not in cookie
    client_value.set_cookie(guard.COOKIE, "good", domain="localhost", secure=True)
    assert client_value.get("/", base_url="https://localhost").status_code == 200
    out = client_value.post("/logout")
    assert out.status_code == 303
    assert f"{guard.COOKIE}=;" in out.headers["Set-Cookie"]


@pytest.mark.parametrize("after", ["//evil.example", "https://evil.example", "/\\evil", "/login"])
def test_the_form_leads_nowhere_else(after: str) -> None:
    answer = guarded().post("/login", data={"token": "good", "next": after})
    assert answer.headers["Location"] == "/"


def test_the_form_is_not_sent_from_elsewhere_nor_with_what_no_cookie_holds() -> None:
    client_value = guarded()
    sent = client_value.post(
        "/login", data={"token": "good"}, headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert sent.status_code == 403
    assert client_value.post("/login", data={"token": "x" * 5000}).status_code == 400
    assert client_value.post("/login", data={"token": "x" * 50_000}).status_code == 413


def test_a_page_whose_token_has_gone_takes_its_reader_to_the_form() -> None:
    answer = guarded().get("/", headers={"HX-Request": "true"})
    assert (answer.status_code, answer.headers["HX-Redirect"]) == (204, "/login")


def test_an_api_server_that_does_not_answer_is_told() -> None:
    class Silent(review_api.Api):
        def create(self, *_: Any) -> dict[str, Any]:
            raise errors.Unreachable(0, "", "timed out")

    answer = guarded(Silent()).get("/api/v1/fleet", headers={"Authorization": "Bearer good"})
    assert answer.status_code == 502
    assert "the API server could not be asked" in answer.get_json()["error"]


def test_requests_are_counted_by_what_was_asked_and_how_it_went() -> None:
    app = web_page.an_application(web_page.Fixed(R))  # its own: the usual one counts all tests
    client_value = app.test_client()
    for path in ("/", "/api/v1/nodes", "/nodes/gpu-1", "/nodes/x", "/nonsense"):
        client_value.get(path)
    result = {
        (sample.labels["route"], sample.labels["code"]): sample.value
        for family in app.extensions["registry"].collect()
        for sample in family.samples
        if sample.name == "dra_gpu_page_requests_total" and sample.value
    }
    assert result == {
        ("overview", "2xx"): 2.0,
        ("node", "2xx"): 1.0,
        ("node", "4xx"): 1.0,
        ("other", "4xx"): 1.0,
    }


def test_every_view_is_counted_by_name() -> None:
    assert {view.name for view in views.VIEWS} <= set(metrics.ROUTES)


def test_the_paths_of_the_api_say_the_same_as_the_views() -> None:
    paths = json.loads(client().get("/api/v1").text)["paths"]
    assert len(paths) == len(views.VIEWS)
