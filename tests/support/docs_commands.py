"""Commands as the pages of docs/ have them, for tests that do what a reader does."""

from pathlib import Path

_CODE = "    "


def commands(page: Path, heading: str) -> list[str]:
    """The lines of code of a section, lines that go on in the next joined.

    Of the section alone, not of those below it. LookupError where the page has no such heading.
    """
    sections = page.read_text().split("\n## ")
    for section in sections[1:]:
        title, _, text = section.partition("\n")
        if title.strip() == heading:
            joined = text.replace("\\\n", " ")
            lines = (line for line in joined.splitlines() if line.startswith(_CODE))
            return [" ".join(line.split()) for line in lines]
    raise LookupError(f"{page.name}: no section {heading!r}")
