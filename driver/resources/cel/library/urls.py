"""URLs in CEL (k8s.io/apiserver pkg/cel/library/urls.go of v0.37.1). Pure.

Kubernetes takes what Go's net/url takes as the target of a request, which is neither RFC 3986 nor
what Python's urllib takes: the rules here are those of Go 1.26.
"""

import functools
import re
import string
import urllib.parse
from dataclasses import dataclass
from typing import Final

from driver.resources.cel import messages
from driver.resources.cel.declarations import Overload
from driver.resources.cel.library.ip_cidr import is_address_within_brackets

_URL: Final = messages.URL
_PLAIN: Final = string.ascii_letters + string.digits + "-_.~"
_IN_PATH: Final = "$&+,/:;=@"
_IN_HOST: Final = "!\"$&'()*+,;=:[]<>"
_IN_USER: Final = "$&+,;="
_IN_FRAGMENT: Final = "!$&()*+,/:;=?@"
_USER: Final = frozenset(_PLAIN + "!$&'()*+,;=:%@")
_KEPT_IN_PATH: Final = frozenset(_PLAIN + _IN_PATH + "!'()*[]%")
_KEPT_IN_FRAGMENT: Final = frozenset(_PLAIN + _IN_FRAGMENT + "'[]%")
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.ASCII | re.DOTALL)
_PORT: Final = re.compile(r"(:[0-9]*)?", re.ASCII)
_ESCAPE: Final = re.compile(rb"%([0-9A-Fa-f]{2})?")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_EMPTY: Final[str | None] = ""
_MOST_PARAMETERS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Parts:
    """A URL in parts. `authority` is None where there is no `//`."""

    scheme: str = ""
    opaque: str = ""
    user: str | None = None
    host: str | None = None
    path: str = ""
    query: str | None = None
    fragment: str = ""


def _target(text: str) -> Parts:
    """The target of a request: absolute, or an absolute path; a `#` is of no meaning in it."""
    if _CONTROL.search(text) or not text:
        raise ValueError("empty, or with a control character")
    if text == "*":
        return Parts(path="*")
    scheme, rest = _scheme(text)
    if rest.count("?") == 1 and rest.endswith("?"):
        rest, query = rest[:-1], _EMPTY
    else:
        rest, _, after = rest.partition("?")
        query = after or None
    if not rest.startswith("/"):
        if scheme:
            return Parts(scheme=scheme, opaque=rest, query=query)
        raise ValueError("neither absolute nor an absolute path")
    user = host = None
    if scheme and rest.startswith("//"):
        authority, slash, after = rest[2:].partition("/")
        rest = slash + after
        user, host = _authority(scheme, authority)
    _unescaped(rest)
    return Parts(scheme=scheme, user=user, host=host, path=rest, query=query)


@functools.lru_cache(maxsize=1024)
def parse_url(text: str) -> Parts:
    """The parts of a URL; ValueError where Kubernetes takes it for none."""
    _target(text)
    previous, _, fragment = text.partition("#")
    parts = _target(previous) if previous else Parts()
    if not parts.scheme and parts.path.startswith("//") and not parts.path.startswith("///"):
        authority, slash, after = parts.path[2:].partition("/")
        user, host = _authority("", authority)
        parts = Parts(user=user, host=host, path=slash + after, query=parts.query)
    _unescaped(fragment)
    return Parts(
        parts.scheme, parts.opaque, parts.user, parts.host, parts.path, parts.query, fragment
    )


def _scheme(text: str) -> tuple[str, str]:
    match = _SCHEME.fullmatch(text)
    if match is not None:
        return match[1].lower(), match[2]
    if text.startswith(":"):
        raise ValueError("missing protocol scheme")
    return "", text


def _authority(scheme: str, text: str) -> tuple[str | None, str]:
    user, separator, host = text.rpartition("@")
    if not separator:
        return None, _host(scheme, host)
    if not set(user) <= _USER:
        raise ValueError("invalid userinfo")
    name, colon, password = user.partition(":")
    written = (
        _escaped(_unescaped(name), _IN_USER) + colon + _escaped(_unescaped(password), _IN_USER)
    )
    return written, _host(scheme, host)


def _host(scheme: str, text: str) -> str:
    if "[" in text:
        return _bracketed(text)
    first, last = text.find(":"), text.rfind(":")
    start = first if scheme in {"http", "https"} else last
    if start >= 0 and not _PORT.fullmatch(text[start:]):
        raise ValueError("invalid port after host")
    return _unescaped_host(text)


def _bracketed(text: str) -> str:
    if text.rfind("[") > 0 or "]" not in text:
        raise ValueError("invalid IP-literal")
    inside, _, port = text[1:].rpartition("]")
    if not _PORT.fullmatch(port):
        raise ValueError("invalid port after host")
    address, percent, zone = inside.partition("%25")
    plain = _unescaped_host(address) + (_unescaped(percent + zone) if percent else "")
    if not is_address_within_brackets(plain):
        raise ValueError("invalid host")
    return f"[{plain}]{port}"


def _unescaped_host(text: str) -> str:
    """Only bytes beyond ASCII, and `%`, may be escaped."""
    for letter in text:
        if letter.isascii() and letter not in _PLAIN + _IN_HOST + "%":
            raise ValueError(f"invalid character {letter!r} in host name")
    for escape in re.findall(r"%(..)", text):
        if re.fullmatch("[0-7][0-9A-Fa-f]", escape) and escape != "25":
            raise ValueError(f"invalid URL escape %{escape}")
    return _unescaped(text)


def _unescaped(text: str) -> str:
    def octet(match: re.Match[bytes]) -> bytes:
        if match[1] is None:
            raise ValueError("invalid URL escape")
        return bytes.fromhex(match[1].decode())

    return _ESCAPE.sub(octet, text.encode()).decode()


def _escaped(text: str, safe: str) -> str:
    return urllib.parse.quote(text, safe=safe + _PLAIN)


def _kept(written: str, allowed: frozenset[str], safe: str) -> str:
    """Return it as written if valid; else as Go writes it."""
    return written if set(written) <= allowed else _escaped(_unescaped(written), safe)


def _escaped_path(parts: Parts) -> str:
    return parts.path if parts.path == "*" else _kept(parts.path, _KEPT_IN_PATH, _IN_PATH)


def _written(parts: Parts) -> str:
    """The URL as Go writes it: what `==` goes by."""
    text = f"{parts.scheme}:" if parts.scheme else ""
    text += parts.opaque
    if not parts.opaque:
        if parts.host or parts.user is not None or (parts.host is not None and parts.path):
            text += "//"
        text += "" if parts.user is None else f"{parts.user}@"
        text += _escaped(parts.host or "", _IN_HOST)
        text += _escaped_path(parts)
    text += "" if parts.query is None else f"?{parts.query}"
    fragment = _kept(parts.fragment, _KEPT_IN_FRAGMENT, _IN_FRAGMENT)
    return text + (f"#{fragment}" if fragment else "")


def _to_url(text: str) -> object:
    return messages.new_value(_URL, _written(parse_url(text)))


def is_url(text: str) -> bool:
    """Return whether Kubernetes accepts a text as a URL."""
    try:
        _target(text)
    except ValueError:
        return False
    return True


def _parts(value: object) -> Parts:
    return parse_url(messages.value_text(value))


def _get_scheme(value: object) -> str:
    return _parts(value).scheme


def _get_host(value: object) -> str:
    return _parts(value).host or ""


def _split(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    if colon and _PORT.fullmatch(colon + port):
        host = name
    else:
        port = ""
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port


def _get_hostname(value: object) -> str:
    return _split(_get_host(value))[0]


def _get_port(value: object) -> str:
    return _split(_get_host(value))[1]


def _get_escaped_path(value: object) -> str:
    return _escaped_path(_parts(value))


def _get_query(value: object) -> dict[str, list[str]]:
    """Return the query's values; unreadable parts are left out."""
    entries: dict[str, list[str]] = {}
    written = (_parts(value).query or "").split("&")
    if len(written) > _MOST_PARAMETERS:
        return entries
    for item in written:
        key, _, part = item.replace("+", " ").partition("=")
        if not item or ";" in item or re.search("%(?![0-9A-Fa-f]{2})", item):
            continue
        entries.setdefault(_unescaped(key), []).append(_unescaped(part))
    return entries


def overloads() -> list[Overload]:
    """The library."""
    url = (_URL,)
    return [
        Overload("url", "string_to_url", ("string",), _URL, _to_url, member=False),
        Overload("isURL", "is_url_string", ("string",), "bool", is_url, member=False),
        Overload("getScheme", "url_get_scheme", url, "string", _get_scheme),
        Overload("getHost", "url_get_host", url, "string", _get_host),
        Overload("getHostname", "url_get_hostname", url, "string", _get_hostname),
        Overload("getPort", "url_get_port", url, "string", _get_port),
        Overload("getEscapedPath", "url_get_escaped_path", url, "string", _get_escaped_path),
        Overload("getQuery", "url_get_query", url, "map<string,list<string>>", _get_query),
    ]
