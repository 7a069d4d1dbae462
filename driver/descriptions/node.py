"""Meanings of the reasons that a node gives: of preparing, publishing, sharing and health."""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    # How a claim's devices are on their node.
    "Prepared": "The claim's devices are ready on their node.",
    "RefusalCleared": (
        "The cause that prevented preparing the claim is gone; the kubelet is asked to retry."
    ),
    # Why a node refuses to prepare a claim.
    "ClaimReplaced": "The claim was deleted and recreated with the same name and another UID.",
    "ClaimNotAllocated": "The claim has no allocation.",
    "ClaimAlreadyUnprepared": (
        "The claim was just unprepared on this node and no pod has reserved it since."
    ),
    "DeviceOverlap": (
        "Other prepared claims on this node use the GPU, the same part of it, or too much of it."
    ),
    "DeviceUnknown": "The allocated device does not exist on this node, or no longer does.",
    "PrepareFailed": "A step of preparing the devices failed and was rolled back.",
    "UnprepareFailed": "Releasing the claim's devices failed; the kubelet retries.",
    "ClaimReclaimed": (
        "A deleted claim was still prepared on the node; its devices were released. The message "
        "names the claim."
    ),
    "StillRunning": (
        "Preparing or releasing takes longer than a call may take. It continues, and the "
        "kubelet's next call waits for the same operation."
    ),
    "SlicesInvalid": "The node's devices exceed a limit of the ResourceSlice API.",
    "FieldsDropped": (
        "The API server dropped fields of the node's ResourceSlices: a feature gate is disabled."
    ),
    "AllocatorChanging": (
        "The devices of the Node or the DeviceTaintRule are being handed over to the other "
        "allocator; until then none of them is allocated."
    ),
    "AllocatorChanged": "The handover is complete; the message names the new allocator.",
    "AllocatorLabelInvalid": (
        "The node's label ration.dev/allocator has an invalid value; the plugin's flag is used."
    ),
    "DeviceTaintRulesDisabled": (
        "Kubernetes does not serve DeviceTaintRules or does not act on them: devices of other "
        "drivers do not pass to the controller."
    ),
    "GpuUnreadable": (
        "The driver lists a GPU that cannot be read or that hangs; the other GPUs are served."
    ),
    "SharingDisabled": (
        "The cluster lacks an API feature that shared and partitioned GPUs need: only whole GPUs "
        "are published."
    ),
    "CrossNamespaceSharing": (
        "Claims of two namespaces share a GPU only if the DeviceClasses of both allow it."
    ),
    "IsolationTooWeak": (
        "The request requires stronger isolation between shares of a GPU than the device has."
    ),
    "SharingConflict": (
        "Claims that share a GPU have different values for a setting that applies to all of it."
    ),
    "AdminAccessRequired": "The device is for claims with adminAccess only.",
    "MpsFailed": "The claim's MPS daemon exited or is unusable; the message has its last output.",
    "MpsRecovered": "The MPS daemon serves again; restart the containers that used it.",
    "MpsClientBlocked": (
        "A process is blocked in cuInit because the MPS server of another user is active; the "
        "message names both."
    ),
    "MpsControlHeld": (
        "A control client stays connected to the claim's MPS daemon, which accepts no command "
        "until it disconnects: limits are not changed, and no claim that changes them is prepared. "
        "The message names the process, its user and its pod."
    ),
    "MpsControlFreed": "The MPS daemon accepts commands again.",
    "ShareExceeded": (
        "The claim's processes together use more GPU memory than allocated; the message names them."
    ),
    "UsageWithinShare": "The claim's processes use no more memory than allocated.",
    "DriverNotReady": "The NVIDIA driver library is missing or not loaded.",
    # Why a node's devices are not published: another agent may give out the same GPUs.
    "DriverNameConflict": (
        "Another driver with the same name runs on the node; nothing is published while it does. "
        "Remove one of them, or install Ration with another driverName."
    ),
    "DevicePluginPresent": (
        "A device plugin serves GPUs on the node, and the same GPU could be given out twice; "
        "nothing is published. Remove it from the node, or set --allow-device-plugin if it serves "
        "other GPUs."
    ),
    "MigConfigPending": (
        "The GPU Operator's MIG manager is reconfiguring the node's GPUs; nothing is published "
        "until it has finished."
    ),
    # Health of the node's GPUs.
    "GpuUnhealthy": "A GPU is tainted; the message states why, and what clears the taint.",
    "GpuRecovered": "A GPU is no longer tainted.",
    "GpuQuarantined": (
        "A GPU failed repeatedly and recovered each time: it stays tainted until an operator "
        "clears the quarantine (explanation/health)."
    ),
    "GpuQuarantineCleared": (
        "The quarantine of a GPU was cleared by the Node's annotation; it is allocated again."
    ),
    "GpuReset": "A GPU that required a reset was reset, or the reset failed; see the message.",
    "GpuApplicationError": (
        "A program on the GPU failed (an Xid of class application); the GPU is healthy."
    ),
    "GpuNotice": "The GPU driver reported an event that requires no action, or cannot report.",
}
