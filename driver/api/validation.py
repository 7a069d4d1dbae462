"""Documents held against their models: the first thing that is wrong, and where."""

from collections.abc import Mapping
from typing import TypeVar

import pydantic

from driver import errors

M = TypeVar("M", bound=pydantic.BaseModel)
NO_UNICODE = ("has half a surrogate pair", "Unicode text")
_OWN = "Value error, "
"""What pydantic puts before the words of a model's own checks."""


def read(model: type[M], document: Mapping[str, object], location: str) -> M:
    """A document as its model.

    Raises:
        BadInput: what is wrong, at which path under `location`.
    """
    try:
        return model.model_validate(document)
    except UnicodeEncodeError as error:  # of a check of ours, whose words pydantic cannot take
        raise errors.BadInput(location, *NO_UNICODE) from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = ".".join([location, *(str(part) for part in first["loc"])])
        unknown = first["type"] == "extra_forbidden"
        text = "is not a field" if unknown else first["msg"].removeprefix(_OWN)
        raise errors.BadInput(path, text) from error
