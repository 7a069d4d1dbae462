"""`resource.ration.dev/v1alpha1`: the opaque configuration a claim or a class may carry (D13).

Models are strict: an unknown field, a wrong type or a wrong kind is refused with its place.
"""

from typing import Literal

import pydantic

from driver import names


class GpuConfig(pydantic.BaseModel):
    """How a GPU is to be set up for its claim. Empty: the whole GPU as it is."""

    model_config = pydantic.ConfigDict(extra="forbid", strict=True, frozen=True)

    apiVersion: Literal["resource.ration.dev/v1alpha1"] = names.CONFIG_VERSION  # noqa: N815 - the API's spelling
    kind: Literal["GpuConfig"] = "GpuConfig"


Config = GpuConfig
"""Every kind of this version; a union as soon as there are two."""
