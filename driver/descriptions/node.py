"""Meanings of the reasons that a node gives: of preparing, publishing, sharing and health."""

from collections.abc import Mapping
from typing import Final

MEANINGS: Final[Mapping[str, str]] = {
    # How a claim's devices are on their node.
    "Prepared": "The claim's devices are ready on their node.",
    "RefusalCleared": (
        "What kept the claim from being prepared is over; the kubelet is asked to try again."
    ),
    # Why a node refuses to prepare a claim.
    "ClaimReplaced": "A claim of that name exists, with another UID.",
    "ClaimNotAllocated": "The claim has no allocation.",
    "ClaimAlreadyUnprepared": (
        "The claim was unprepared on the node just before, and no pod has reserved it since."
    ),
    "DeviceOverlap": (
        "On this node prepared claims hold the GPU, the same part of it, or too much of it."
    ),
    "DeviceUnknown": "The allocated device is not, or no longer, on this node.",
    "PrepareFailed": "A step of preparing the devices failed and was undone.",
    "UnprepareFailed": "Releasing the claim's devices failed; the kubelet tries again.",
    "ClaimReclaimed": (
        "A claim that is gone was still prepared on the node; its devices were released. The "
        "message says which."
    ),
    "StillRunning": (
        "Preparing or releasing takes longer than a call may; the kubelet's next try joins it."
    ),
    "SlicesInvalid": "The node's devices break a limit of the API.",
    "FieldsDropped": (
        "The API server dropped fields of the node's slices: a feature is switched off there."
    ),
    "AllocatorChanging": (
        "The node's devices pass to another allocator: for a while nobody gives them out."
    ),
    "AllocatorChanged": (
        "A handover of the node's devices is over; the message says who gives them out now."
    ),
    "AllocatorLabelInvalid": (
        "The node's label ration.dev/allocator names no allocator; the plugin's flag holds."
    ),
    "GpuUnreadable": (
        "A GPU is counted by the driver and cannot be read, or hangs; the others are served."
    ),
    "SharingDisabled": (
        "The cluster lacks what shared and partitioned GPUs need: whole GPUs are published only."
    ),
    "CrossNamespaceSharing": (
        "Claims of two namespaces may share a GPU only where both their classes allow it."
    ),
    "IsolationTooWeak": (
        "The request asks for parts of GPUs that are kept apart better than the device is."
    ),
    "SharingConflict": "Claims that share a GPU must agree on what is one setting for all of it.",
    "AdminAccessRequired": "The device is for claims with administrative access only.",
    "MpsFailed": "The claim's MPS daemon is gone or of no use; with its last words.",
    "MpsRecovered": "The MPS daemon serves again; start its containers anew.",
    "MpsClientBlocked": (
        "A process waits in cuInit behind the MPS server of another user; the message names both."
    ),
    "MpsControlHeld": (
        "A control program stays connected to the claim's MPS daemon, which takes no command "
        "meanwhile: limits stay as they are, and no claim that changes them is prepared. The "
        "message names the process, its user and its pod."
    ),
    "MpsControlFreed": "The MPS daemon takes commands again.",
    "ShareExceeded": (
        "The claim's processes together use more memory of a GPU than it was given; the message "
        "names them."
    ),
    "UsageWithinShare": "The claim's processes use no more memory than it was given.",
    "DriverNotReady": "The NVIDIA driver library is absent or not loaded.",
    # Why a node's devices are not published: somebody else may give out the same GPUs.
    "DriverNameConflict": (
        "Another driver uses this driver's name on the node; nothing is published beside it. "
        "Remove one of them, or install Ration under another name."
    ),
    "DevicePluginPresent": (
        "A device plugin serves GPUs on the node: they would be given out twice. Take it off the "
        "node; or set --allow-device-plugin if it serves other GPUs."
    ),
    "MigConfigPending": (
        "The GPU Operator's MIG manager is changing the node's GPUs; it is waited for."
    ),
    # What the node's GPUs say of themselves.
    "GpuUnhealthy": "A GPU is tainted; the message says why, and what clears the taint.",
    "GpuRecovered": "A GPU that was tainted is not any more.",
    "GpuQuarantined": (
        "A GPU failed again and again and recovered each time: it is kept out until somebody "
        "clears it (explanation/health)."
    ),
    "GpuQuarantineCleared": (
        "A GPU that had failed again and again is given out again, as the Node's annotation asked."
    ),
    "GpuReset": (
        "A GPU that asked for it was reset, or could not be; the message says how that went."
    ),
    "GpuApplicationError": (
        "A program on the GPU failed (an Xid of class application); the GPU is fine."
    ),
    "GpuNotice": "The GPU driver reported something that asks for nothing now, or cannot report.",
}
