"""Chromium walks through the page: by mouse and by keys, light and dark, wide and narrow."""

from collections.abc import Iterator
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from hack import browser as browsers
from tests.fakes import waiting
from tests.support import web_page

# The first of all may have to install a browser.
pytestmark = pytest.mark.timeout(400)
R = web_page.a_reading()
GPU = next(one for one in R.nodes().items[0].gpus if one.mode == "mig")
EVERY = (
    "/",
    "/nodes/gpu-1",
    f"/nodes/gpu-1/gpus/{GPU.name}",
    "/waiting",
    "/pods",
    "/pods/nlp/big",
    "/pods/vision/train",
    "/claims",
    "/claims/nlp/serve",
    "/queues",
    "/queues/nlp",
    "/reservations",
    "/reservations/vision/nightly",
    "/shapes",
    "/timeline",
)


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with web_page.served(web_page.an_application(web_page.Fixed(R))) as port:
        yield f"http://localhost:{port}"


@pytest.fixture(scope="module")
def shared() -> Iterator[browsers.Browser]:
    amiss = browsers.ensure()
    if amiss:
        pytest.skip(amiss)
    with browsers.opened() as found:
        yield found


@pytest.fixture
def browser(shared: browsers.Browser) -> browsers.Browser:
    browsers.sized(shared, 1280, 900)
    browsers.coloured(shared, dark=False)
    browsers.said(shared)
    return shared


def run(browser: browsers.Browser, script: str) -> Any:
    return browser.execute_script(script)


def focused(browser: browsers.Browser) -> WebElement:
    return browser.switch_to.active_element


def heading(browser: browsers.Browser) -> str:
    return str(run(browser, "return document.querySelector('h1').textContent")).strip()


def go(browser: browsers.Browser, selector: str) -> None:
    """Click a link, and wait until it has led somewhere."""
    before = browser.current_url
    browser.find_element(By.CSS_SELECTOR, selector).click()
    waiting.until(lambda: browser.current_url != before, within_s=5)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True])
def test_every_page_fits_and_the_console_is_silent(
    browser: browsers.Browser, base: str, width: int, *, dark: bool
) -> None:
    browsers.sized(browser, width, 800)
    browsers.coloured(browser, dark=dark)
    for path in EVERY:
        browser.get(base + path)
        wide = run(browser, "return document.documentElement.scrollWidth")
        assert wide <= width, f"{path} is {wide} px wide"
        ground = run(browser, "return getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(14, 18, 23)" if dark else "rgb(245, 246, 248)")
        assert browsers.said(browser) == []


def test_a_claim_leads_to_its_pod_its_node_its_gpu_and_back(
    browser: browsers.Browser, base: str
) -> None:
    browser.get(f"{base}/claims")
    go(browser, "a[href='/claims/nlp/serve']")
    assert heading(browser).startswith("serve")
    go(browser, "dd a[href='/pods/nlp/serve']")
    assert heading(browser).startswith("serve")
    go(browser, "dd a[href='/nodes/gpu-1']")
    assert heading(browser) == "gpu-1"
    (gpu,) = [one for one in R.nodes().items[0].gpus if one.mode == "mps"]
    go(browser, f"h3 a[href='/nodes/gpu-1/gpus/{gpu.name}']")
    assert heading(browser).startswith(gpu.name)
    go(browser, "td a[href='/claims/nlp/serve']")
    assert browser.current_url == f"{base}/claims/nlp/serve"
    go(browser, "dd a[href='/queues/nlp']")
    assert heading(browser) == "nlp"
    browser.back()
    waiting.until(lambda: browser.current_url.endswith("/claims/nlp/serve"), within_s=5)
    assert browsers.said(browser) == []


def test_a_bar_segment_has_its_devices_position_and_links_to_the_claim(
    browser: browsers.Browser, base: str
) -> None:
    browser.get(f"{base}/nodes/gpu-1/gpus/{GPU.name}")
    bar = browser.find_element(By.CSS_SELECTOR, "svg.bar")
    piece = bar.find_element(By.CSS_SELECTOR, "a[href='/claims/batch/half'] rect")
    left = (piece.rect["x"] - bar.rect["x"]) / bar.rect["width"]
    assert (round(left, 2), round(piece.rect["width"] / bar.rect["width"], 2)) == (0.5, 0.5)
    piece.click()
    waiting.until(lambda: browser.current_url.endswith("/claims/batch/half"), within_s=5)


def test_the_page_is_walked_by_keys_alone(browser: browsers.Browser, base: str) -> None:
    browser.get(f"{base}/")
    focused(browser).send_keys(Keys.TAB)
    assert focused(browser).text == "Skip to content"
    focused(browser).send_keys(Keys.ENTER)
    assert focused(browser).get_attribute("id") == "content"
    focused(browser).send_keys("/")
    assert focused(browser).get_attribute("id") == "filter"
    focused(browser).send_keys("gpu-2/", Keys.BACKSPACE, Keys.ENTER)
    waiting.until(lambda: "name=gpu-2" in browser.current_url, within_s=5)
    shown = browser.find_elements(By.CSS_SELECTOR, "article.node h3")
    assert [one.text for one in shown] == ["gpu-2"]
    link = browser.find_element(By.CSS_SELECTOR, "article.node h3 a")
    while focused(browser) != link:
        focused(browser).send_keys(Keys.TAB)
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert run(browser, outline) != "none"
    focused(browser).send_keys(Keys.ENTER)
    waiting.until(lambda: heading(browser) == "gpu-2", within_s=5)


def test_reading_anew_keeps_the_focus_the_place_and_what_is_typed(
    browser: browsers.Browser, base: str
) -> None:
    browsers.sized(browser, 1280, 400)
    browser.get(f"{base}/")
    run(browser, "document.addEventListener('htmx:after:swap', () => { window.anew = true; })")
    field = browser.find_element(By.ID, "filter")
    field.send_keys("gp")
    last = browser.find_elements(By.CSS_SELECTOR, "svg.bar a")[-1]
    run(browser, "window.kept = [...document.querySelectorAll('svg.bar a')].at(-1); kept.focus()")
    run(browser, "window.scrollTo(0, 300)")
    waiting.until(lambda: run(browser, "return window.anew === true"), within_s=12)
    assert run(browser, "return document.activeElement === window.kept && kept.isConnected")
    assert last == focused(browser)
    assert run(browser, "return window.scrollY") == 300
    assert field.get_attribute("value") == "gp"
    assert browsers.said(browser) == []


def test_a_connection_that_is_lost_is_told(browser: browsers.Browser) -> None:
    with web_page.served(web_page.an_application(web_page.Fixed(R))) as port:
        browser.get(f"http://localhost:{port}/queues")
        lost = browser.find_element(By.CSS_SELECTOR, ".lost")
        assert not lost.is_displayed()
    waiting.until(lost.is_displayed, within_s=20)
    browsers.said(browser)


def test_without_scripts_everything_is_there(browser: browsers.Browser, base: str) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        for path in EVERY:
            browser.get(base + path)
            assert browser.find_element(By.CSS_SELECTOR, "#live .asof").is_displayed()
        go(browser, "nav a[href='/queues']")
        browser.get(f"{base}/")
        browser.find_element(By.NAME, "name").send_keys("gpu-3", Keys.ENTER)
        waiting.until(lambda: "name=gpu-3" in browser.current_url, within_s=5)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
