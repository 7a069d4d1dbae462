"""Pictures of a running page for the documentation, light and dark: `python -m hack.screenshots`.

`make demo` and `kubectl port-forward` give a page, or `python -m tests.support.web_page`.
"""

import argparse
import sys
from pathlib import Path

from selenium.common import exceptions

from hack import browser as browsers

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
WIDTH = 1280
_MOST_HIGH = 1100
_SETTLE_S = 1.0


def take(base: str, paths: dict[str, str], folder: Path) -> list[Path]:
    """One picture for each path and each of light and dark, by the name of the path."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    with browsers.opened(WIDTH) as browser:
        browser.implicitly_wait(_SETTLE_S)
        for dark in (False, True):
            browsers.coloured(browser, dark=dark)
            for name, path in paths.items():
                made.append(folder / f"{name}-{'dark' if dark else 'light'}.png")
                _one(browser, base.rstrip("/") + path, made[-1])
    return made


def _one(browser: browsers.Browser, url: str, file: Path) -> None:
    browsers.sized(browser, WIDTH, 400)
    browser.get(url)
    high = int(browser.execute_script("return document.documentElement.scrollHeight"))
    browsers.sized(browser, WIDTH, min(high, _MOST_HIGH))
    browser.save_screenshot(str(file))


def main() -> int:
    """Take them; the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--url", default="http://localhost:8081", help="where the page is")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("path", nargs="*", default=["page=/"], help="name=/path of a picture")
    given = parser.parse_args()
    amiss = browsers.ensure()
    if amiss:
        sys.stderr.write(f"screenshots: {amiss}\n")
        return 1
    paths = dict(one.split("=", 1) for one in given.path)
    try:
        made = take(given.url, paths, given.folder)
    except exceptions.WebDriverException as error:
        sys.stderr.write(f"screenshots: {given.url}: {str(error.msg).partition(chr(10))[0]}\n")
        return 1
    for file in made:
        print(f"{file} {file.stat().st_size // 1024} KiB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
