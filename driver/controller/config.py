"""The controller's settings: flag, else environment (`RATION_` and the flag), else default."""

from pathlib import Path

import pydantic
import pydantic_settings

from driver import names
from driver.controller.allocation import policies


class ControllerConfig(pydantic_settings.BaseSettings):
    """Decides which GPU each pod's claims get, and writes the allocations."""

    model_config = pydantic_settings.SettingsConfigDict(
        env_prefix="RATION_",
        extra="forbid",
        frozen=True,
        cli_parse_args=True,
        cli_prog_name="ration-controller",
        cli_kebab_case=True,
        cli_implicit_flags=True,
        cli_hide_none_type=True,
    )

    kubeconfig: Path | None = pydantic.Field(
        default=None, description="Path of a kubeconfig; without it, the pod's own credentials."
    )
    driver_name: str = pydantic.Field(
        default=names.DRIVER, description="Name of the DRA driver whose devices are allocated."
    )
    identity: str = pydantic.Field(
        default="", description="Name of this replica in the Lease; the host's name by default."
    )
    namespace: str = pydantic.Field(default="ration-system", description="Namespace of the Lease.")
    policy: str = pydantic.Field(
        default="pack",
        description=f"Placement policy: {', '.join(sorted(policies.POLICIES))}.",
    )
    writers: int = pydantic.Field(
        default=8, ge=1, le=64, description="Threads that write decisions."
    )
    refused_seconds: float = pydantic.Field(
        default=30.0,
        gt=0,
        description="Free an unbound allocation so long after the scheduler refused the pod.",
    )
    metrics_address: str = pydantic.Field(
        default="127.0.0.1:0", description="address:port of /metrics, /healthz and /readyz."
    )
    log_level: str = pydantic.Field(default="info", description="debug, info, warning or error.")

    @pydantic.field_validator("policy")
    @classmethod
    def _known_policy(cls, value: str) -> str:
        if value not in policies.POLICIES:
            known = ", ".join(sorted(policies.POLICIES))
            raise ValueError(f"{value!r} is no policy; expected one of {known}")
        return value

    @pydantic.field_validator("metrics_address")
    @classmethod
    def _address_and_port(cls, value: str) -> str:
        host, _, port = value.rpartition(":")
        if not host or not port.isdigit():
            raise ValueError(f"{value!r} is not address:port")
        return value

    @property
    def metrics_host_port(self) -> tuple[str, int]:
        """The address and the port apart."""
        host, _, port = self.metrics_address.rpartition(":")
        return host, int(port)
