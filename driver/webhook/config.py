"""The webhook's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path
from typing import ClassVar, Literal

import pydantic

from driver import names
from driver.runtime import settings


class AdmissionConfig(settings.ClusterSettings):
    """Refuses configuration that no node could prepare, and converts device plugins' resources."""

    PROGRAM: ClassVar[str] = "ration-admission"

    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver whose configuration is checked."
    )
    webhook_address: str = pydantic.Field(
        default="0.0.0.0:8443", description="address:port of the webhook itself, with TLS."
    )
    identity: str = pydantic.Field(
        default="", description="Name of this replica in the Lease; the host's name by default."
    )
    namespace: str = pydantic.Field(
        default="ration-system", description="Namespace of the Lease, the Secret and the Service."
    )
    service: str = pydantic.Field(
        default="ration-admission", description="Service by which the API server calls."
    )
    certificates: Literal["self", "files"] = pydantic.Field(
        default="self",
        description=(
            "`self`: made and renewed here, kept in a Secret, published as caBundle; `files`: read "
            "from --tls-cert-file and --tls-key-file, again whenever they change."
        ),
    )
    secret: str = pydantic.Field(
        default="ration-admission-tls", description="Secret of certificates that are made here."
    )
    webhook_configuration: str = pydantic.Field(
        default="ration-admission",
        description="Name of the webhook configurations whose caBundle is kept.",
    )
    tls_cert_file: Path | None = pydantic.Field(
        default=None, description="Certificate, with its chain, in PEM."
    )
    tls_key_file: Path | None = pydantic.Field(default=None, description="Its key, in PEM.")
    whole_class: str = pydantic.Field(
        default=names.CLASS_GPU, description="DeviceClass that nvidia.com/gpu is converted to."
    )
    shared_class: str = pydantic.Field(
        default=names.CLASS_TIMESLICE,
        description="DeviceClass that nvidia.com/gpu.shared is converted to.",
    )
    mig_class: str = pydantic.Field(
        default=names.CLASS_MIG, description="DeviceClass that nvidia.com/mig-* is converted to."
    )
    template_ttl_seconds: float = pydantic.Field(
        default=3600.0,
        ge=60,
        description="Remove a template of converted pods that no pod was given for so long.",
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
