from pathlib import Path

from hack.image import build


def a_checkout(folder: Path) -> Path:
    for name in (
        "driver/one.py",
        "driver/web/templates/page.html",
        "pyproject.toml",
        build.LOCK,
        build.LEFT_OUT,
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("as it was")
    return folder


def test_a_changed_template_makes_another_image(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    previous = build._key(checkout)
    assert build._key(checkout) == previous
    (checkout / "driver/web/templates/page.html").write_text("changed")
    assert build._key(checkout) != previous


def test_bytecode_makes_no_other_image(tmp_path: Path) -> None:
    checkout = a_checkout(tmp_path)
    previous = build._key(checkout)
    (checkout / "driver/__pycache__").mkdir()
    (checkout / "driver/__pycache__/one.pyc").write_text("x")
    assert build._key(checkout) == previous
