"""The distribution's own chromium, headless: for walks through the page and pictures of it."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from typing import Any

from selenium import webdriver

PACKAGES = ("chromium", "chromium-driver")
PROGRAMS = ("chromium", "chromedriver")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
)
Browser = webdriver.Chrome


def lacking() -> tuple[str, ...]:
    """The programs that are not there."""
    return tuple(one for one in PROGRAMS if shutil.which(one) is None)


def ensure() -> str:
    """Install it where the distribution has it; what is amiss then, "" for nothing."""
    if lacking() and os.geteuid() == 0 and shutil.which("apt-get"):
        patient = ("apt-get", "-q", "-o", "DPkg::Lock::Timeout=120")
        install = [*patient, "install", "-y", "--no-install-recommends", *PACKAGES]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in ([*patient, "update"], install):
            subprocess.run(command, check=False, capture_output=True, env=environment)
    missing = lacking()
    return f"no {' and '.join(missing)}: install {', '.join(PACKAGES)}" if missing else ""


@contextlib.contextmanager
def opened(width: int = 1280, height: int = 900, *, dark: bool = False) -> Iterator[Browser]:
    """A browser with a profile of its own, which goes with it."""
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for flag in (*_FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        service = webdriver.ChromeService(str(shutil.which("chromedriver")))
        browser = webdriver.Chrome(options=options, service=service)
        try:
            sized(browser, width, height)
            coloured(browser, dark=dark)
            yield browser
        finally:
            browser.quit()


def sized(browser: Browser, width: int, height: int, scale: float = 1.0) -> None:
    """Have pages be so many CSS pixels wide and high, whatever the window is."""
    metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def coloured(browser: Browser, *, dark: bool) -> None:
    """Have pages be told that light or dark is preferred."""
    wanted = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [wanted]})


def said(browser: Browser) -> list[str]:
    """What the console has said since it was last asked: errors and warnings."""
    entries: list[dict[str, Any]] = browser.get_log("browser")  # type: ignore[no-untyped-call]
    return [str(one["message"]) for one in entries if one["level"] in {"SEVERE", "WARNING"}]
