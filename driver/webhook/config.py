"""The webhook's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path
from typing import ClassVar, Literal

import pydantic

from driver import names
from driver.runtime import settings


class AdmissionConfig(settings.ClusterSettings):
    """Rejects configuration that no node can prepare, and converts extended resources to claims."""

    PROGRAM: ClassVar[str] = "ration-admission"

    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver whose configuration is validated."
    )
    webhook_address: str = pydantic.Field(
        default="0.0.0.0:8443", description="Listen address (address:port) of the webhook, TLS."
    )
    identity: str = pydantic.Field(
        default="", description="Identity of this replica in the Lease. Default: the host name."
    )
    namespace: str = pydantic.Field(
        default="ration-system", description="Namespace of the Lease, the Secret and the Service."
    )
    service: str = pydantic.Field(
        default="ration-admission",
        description="Name of the Service through which the API server calls the webhook.",
    )
    certificates: Literal["self", "files"] = pydantic.Field(
        default="self",
        description=(
            "Source of the serving certificate. `self`: issued and renewed by the webhook, stored "
            "in a Secret and published as caBundle; `files`: read from --tls-cert-file and "
            "--tls-key-file, and reread when they change."
        ),
    )
    secret: str = pydantic.Field(
        default="ration-admission-tls",
        description="Name of the Secret for self-issued certificates.",
    )
    webhook_configuration: str = pydantic.Field(
        default="ration-admission",
        description="Name of the webhook configurations whose caBundle is updated.",
    )
    tls_cert_file: Path | None = pydantic.Field(
        default=None, description="Path of the serving certificate and its chain, PEM."
    )
    tls_key_file: Path | None = pydantic.Field(
        default=None, description="Path of the private key of the serving certificate, PEM."
    )
    whole_class: str = pydantic.Field(
        default=names.CLASS_GPU,
        description="DeviceClass that nvidia.com/gpu is converted to. Empty: it is not converted.",
    )
    shared_class: str = pydantic.Field(
        default=names.CLASS_TIMESLICE,
        description="DeviceClass that nvidia.com/gpu.shared is converted to. Empty: it is not "
        "converted.",
    )
    mig_class: str = pydantic.Field(
        default=names.CLASS_MIG,
        description="DeviceClass that nvidia.com/mig-* is converted to. Empty: it is not "
        "converted.",
    )
    template_ttl_seconds: float = pydantic.Field(
        default=3600.0,
        ge=60,
        description="Time in seconds after which an unused ResourceClaimTemplate of converted "
        "pods is deleted.",
    )

    @pydantic.field_validator("webhook_address")
    @classmethod
    def _listens(cls, value: str) -> str:
        settings.host_port(value)
        return value

    @pydantic.field_validator("tls_cert_file", "tls_key_file")
    @classmethod
    def _is_named(cls, value: Path | None, info: pydantic.ValidationInfo) -> Path | None:
        if value is None and info.data.get("certificates") == "files":
            raise ValueError("is needed where certificates are read from files")
        return value

    @property
    def webhook_host_port(self) -> tuple[str, int]:
        """The address and the port apart."""
        return settings.host_port(self.webhook_address)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names under which the API server calls the webhook, for its certificate."""
        return f"{self.service}.{self.namespace}.svc", f"{self.service}.{self.namespace}"
