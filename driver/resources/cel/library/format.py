"""Named formats of strings in CEL (k8s.io/apiserver pkg/cel/library/format.go of v0.37.1). Pure.

Whether a text is of a format is told; in which words Kubernetes complains is not.
"""

import datetime as dt
import re
from collections.abc import Callable
from typing import Final

from driver.resources.cel import messages
from driver.resources.cel.declarations import Overload
from driver.resources.cel.library import urls

_F: Final = messages.FORMAT
_LABEL: Final = 63
_SUBDOMAIN: Final = 253
_A_LABEL: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_A_KEY: Final = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_TIME: Final = re.compile(
    r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|[+-][0-9]{2}:[0-9]{2})", re.ASCII
)
_LATEST: Final = ("23", "59", "59")


def _matching(pattern: str, most: int | None = None) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)

    def fits(text: str) -> bool:
        short = most is None or len(text.encode()) <= most
        return short and compiled.fullmatch(text) is not None

    return fits


def _as_prefix(fits: Callable[[str], bool]) -> Callable[[str], bool]:
    """Names are made of it by adding to it, so that it may end with a dash."""

    def prefix(text: str) -> bool:
        # Kubernetes takes the two last bytes away, which cuts a longer character in two.
        ends = len(text) > 1 and text.endswith("-") and text[-2].isascii()
        return fits(f"{text[:-2]}a" if ends else text)

    return prefix


_is_label: Final = _matching(_A_LABEL, _LABEL)
_is_subdomain: Final = _matching(rf"{_A_LABEL}(\.{_A_LABEL})*", _SUBDOMAIN)
_is_old_label: Final = _matching(r"[a-z]([-a-z0-9]*[a-z0-9])?", _LABEL)
_is_key: Final = _matching(_A_KEY, _LABEL)
_is_base64: Final = _matching(
    r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
)
_is_uuid: Final = _matching(r"(?i:[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12})")


def _is_qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    return _is_key(name) and (not slash or _is_subdomain(prefix))


def _is_date(text: str) -> bool:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text, re.ASCII):
        return False
    # Python has no year 0, Go has; it is a leap year as 2000 is.
    year = "2000" if text.startswith("0000") else text[:4]
    try:
        dt.date.fromisoformat(year + text[4:])
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    date, _, rest = text.lower().partition("t")
    match = _TIME.fullmatch(rest.partition("t")[0])
    if match is None or not _is_date(date):
        return False
    return all(result <= most for result, most in zip(match.groups()[:3], _LATEST, strict=True))


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "dns1123Label": _is_label,
    "dns1123Subdomain": _is_subdomain,
    "dns1035Label": _is_old_label,
    "qualifiedName": _is_qualified,
    "dns1123LabelPrefix": _as_prefix(_is_label),
    "dns1123SubdomainPrefix": _as_prefix(_is_subdomain),
    "dns1035LabelPrefix": _as_prefix(_is_old_label),
    "labelValue": lambda text: not text or _is_key(text),
    "uri": urls.is_url,
    "uuid": _is_uuid,
    "byte": _is_base64,
    "date": _is_date,
    "datetime": _is_datetime,
}


def _validated(form: object, text: str) -> list[str]:
    return (
        [] if _FORMATS[messages.value_text(form)](text) else [f"is no {messages.value_text(form)}"]
    )


def _named(name: str) -> object:
    return messages.new_value(_F, name) if name in _FORMATS else messages.no_value(_F)


def _constant(name: str) -> Callable[[], object]:
    return lambda: messages.new_value(_F, name)


def overloads() -> list[Overload]:
    """The library; what gives an optional is written in terms of `@found` (`rewriter`)."""
    text = ("string",)
    return [
        Overload("format.named", "format-named", text, f"optional_type<{_F}>", member=False),
        Overload("validate", "format-validate", (_F, *text), "optional_type<list<string>>"),
        *(
            Overload(f"format.{name}", f"format.{name}", (), _F, _constant(name), member=False)
            for name in _FORMATS
        ),
    ]


def implementations() -> list[Overload]:
    """Return the implementations of the named formats."""
    text = ("string",)
    return [
        Overload("@named", "@named", text, _F, _named, member=False),
        Overload("@validated", "@validated", (_F, *text), "list<string>", _validated, member=False),
    ]
