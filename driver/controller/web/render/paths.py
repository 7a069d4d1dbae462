"""Paths of pages; the JSON twin of each is below `/api/v1`. Pure."""

from urllib.parse import quote, urlencode

API = "/api/v1"
_KINDS = {"Pod": "pods", "ResourceClaim": "claims", "Reservation": "reservations"}
_PLAIN = {"Node": "nodes", "Queue": "queues"}


def node(name: str) -> str:
    """A node's page."""
    return f"/nodes/{_quoted(name)}"


def gpu(node_name: str, name: str) -> str:
    """The page of a node's GPU."""
    return f"{node(node_name)}/gpus/{_quoted(name)}"


def claim(key: str) -> str:
    """A claim's page, by `namespace/name`."""
    return _keyed("claims", key)


def pod(key: str) -> str:
    """A pod's page, by `namespace/name`."""
    return _keyed("pods", key)


def queue(name: str) -> str:
    """A queue's page."""
    return f"/queues/{_quoted(name)}"


def reservation(key: str) -> str:
    """A reservation's page, by `namespace/name`."""
    return _keyed("reservations", key)


def object_page(kind: str, namespace: str, name: str) -> str:
    """Return the page of an object of a kind; "" if it has none."""
    if kind in _KINDS and namespace:
        return _keyed(_KINDS[kind], f"{namespace}/{name}")
    return f"/{_PLAIN[kind]}/{_quoted(name)}" if kind in _PLAIN else ""


def twin(path: str, query: str = "") -> str:
    """Return the JSON path of a page; the overview's is that of its nodes."""
    return API + ("/nodes" if path == "/" else path) + (f"?{query}" if query else "")


def with_query(path: str, values: dict[str, object]) -> str:
    """Return a path with a query; empty values are left out."""
    parameters = {key: value for key, value in values.items() if value not in {"", None}}
    return f"{path}?{urlencode(parameters)}" if parameters else path


def _keyed(kind: str, key: str) -> str:
    return f"/{kind}/" + "/".join(map(_quoted, key.split("/", 1)))


def _quoted(part: str) -> str:
    return quote(part, safe="")
