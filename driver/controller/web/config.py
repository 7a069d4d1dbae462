"""The page's settings, which are the controller's: flag, else environment, else default."""

from pathlib import Path
from typing import Literal

import pydantic

from driver.controller.web import page
from driver.controller.web.auth import rules
from driver.runtime import settings


class PageSettings(settings.ClusterSettings):
    """Address and access of the page."""

    web_address: str = pydantic.Field(
        default="127.0.0.1:8081",
        description="Listen address (address:port) of the web page and the JSON API; empty "
        "disables both. A loopback address needs no authentication: access is by `kubectl "
        "port-forward` and its RBAC.",
    )
    web_auth: Literal["none", "token"] = pydantic.Field(
        default="none",
        description="Authentication of readers. `token`: a Kubernetes bearer token whose user may "
        "list resourceclaims and pods in all namespaces; required for other than loopback "
        "addresses.",
    )
    web_tls_cert_file: Path | None = pydantic.Field(
        default=None,
        description="Path of the page's serving certificate and its chain, PEM. Default: plain "
        "HTTP.",
    )
    web_tls_key_file: Path | None = pydantic.Field(
        default=None, description="Path of the private key of the serving certificate, PEM."
    )

    @pydantic.field_validator("web_address")
    @classmethod
    def _listens(cls, value: str) -> str:
        if value:
            settings.host_port(value)
        return value

    @pydantic.field_validator("web_auth")
    @classmethod
    def _is_guarded(cls, value: str, info: pydantic.ValidationInfo) -> str:
        address = info.data.get("web_address")
        if value == "none" and address and not rules.is_loopback(settings.host_port(address)[0]):
            raise ValueError(f"has to be token where others reach the page, at {address}")
        return value

    @pydantic.field_validator("web_tls_key_file")
    @classmethod
    def _is_a_pair(cls, value: Path | None, info: pydantic.ValidationInfo) -> Path | None:
        if (value is None) != (info.data.get("web_tls_cert_file") is None):
            raise ValueError("goes together with --web-tls-cert-file")
        return value

    @property
    def page(self) -> page.PageConfig | None:
        """The page's configuration; None: no page."""
        if not self.web_address:
            return None
        return page.PageConfig(
            settings.host_port(self.web_address),
            self.web_auth == "token",
            self.web_tls_cert_file,
            self.web_tls_key_file,
        )
