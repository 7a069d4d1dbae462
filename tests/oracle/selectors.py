"""Kubernetes' own CEL, asked whether a selector matches a device."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle import conversation


@dataclass(frozen=True, slots=True)
class Refused:
    """The expression does not compile."""

    why: str


@dataclass(frozen=True, slots=True)
class Failed:
    """It fails on this device."""

    why: str


Verdict = bool | Refused | Failed


class Selectors(conversation.Conversation):
    """Evaluator of selectors by kube-scheduler of the pinned version, with all gates on."""

    def __init__(self, path: Path | None = None) -> None:
        super().__init__(path, "selectors")

    def matches(self, expression: str, device: Mapping[str, Any], driver: str) -> Verdict:
        """Return the verdict on a `Device` of resource.k8s.io/v1, as its slice has it."""
        document = self._told(expression, device, driver)
        match document:
            case {"refused": str(why)}:
                return Refused(why)
            case {"failed": str(why)}:
                return Failed(why)
            case {"matches": bool(matches)}:
                return matches
            case _:
                raise conversation.Ended(f"answered {document}")

    def cost(self, expression: str) -> int | None:
        """The most that an expression may cost; None where it does not compile."""
        document = self._told(expression, {"name": "any"}, "any.example.com")
        return document["cost"] or None

    def _told(self, expression: str, device: Mapping[str, Any], driver: str) -> dict[str, Any]:
        question = {"expression": expression, "driver": driver, "device": device}
        document: dict[str, Any] = json.loads(self.ask(json.dumps(question) + "\n"))
        return document
