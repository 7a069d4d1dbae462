"""Resolves the configuration of each grant, and the terms of shared ones. Pure."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from driver import errors, ids, reasons
from driver.api import decode, v1alpha1
from driver.devices import faces
from driver.kubeletplugin import ports
from driver.kubeletplugin.plan import claim_mps, steps
from driver.resources.dra import claims
from driver.resources.sharing import compatibility
from driver.resources.sharing import multi_user as sharing_multi_user

ConfiguredGrant = tuple[steps.Grant, v1alpha1.Config]


def resolve_configs(
    granted: Sequence[steps.Grant],
    results: Sequence[claims.Result],
    documents: Sequence[decode.Document],
    namespace: str,
    multi_user: Mapping[ids.GpuUuid, bool] = MappingProxyType({}),
) -> tuple[ConfiguredGrant, ...] | ports.Refused:
    """Return each grant with its configuration, or why the claim cannot have one.

    `multi_user` is for GPUs already shared by MPS: whether their servers are multi-user.
    """
    resolved: list[ConfiguredGrant] = []
    for grant, result in zip(granted, results, strict=True):
        gpu = grant.face.gpu
        server = sharing_multi_user.MpsServer(
            sharing_multi_user.major(gpu.driver_version),
            gpu.cuda_capability,
            multi_user.get(gpu.uuid),
        )
        config = _resolve_config(grant, result, documents, namespace, server)
        if isinstance(config, ports.Refused):
            return config
        resolved.append(config)
    try:
        claim_mps.claim_daemon(resolved)
    except errors.BadInput as problem:
        return _permanent_refusal(reasons.Reason.CONFIG_INVALID, str(problem))
    return tuple(resolved)


def _resolve_config(
    grant: steps.Grant,
    result: claims.Result,
    documents: Sequence[decode.Document],
    namespace: str,
    server: sharing_multi_user.MpsServer,
) -> ConfiguredGrant | ports.Refused:
    kind: decode.Kind = "MigDeviceConfig" if isinstance(grant.face, faces.MigFace) else "GpuConfig"
    try:
        shared = isinstance(grant.face, faces.ShareFace)
        config = decode.select_config(documents, result.request, kind, shared=shared)
    except errors.BadInput as problem:
        return _permanent_refusal(reasons.Reason.CONFIG_INVALID, str(problem))
    if not isinstance(grant.face, faces.ShareFace):
        return grant, config
    need = decode.find_slice_config(documents, result.request)
    terms = compatibility.check_isolation(
        result, grant.face.sharing, need
    ) or compatibility.result_terms(result, grant.face.sharing, namespace, config, server)
    if isinstance(terms, compatibility.Conflict):
        return _permanent_refusal(terms.reason, terms.message)
    return steps.with_terms(grant, terms), config


def _permanent_refusal(reason: reasons.Reason, message: str) -> ports.Refused:
    return ports.Refused(reason, message, permanent=True)
