"""Cluster facts of the webhook in these tests: the installed classes, GPUs of 80Gi."""

from driver import names
from driver.resources.dra import device_classes
from driver.webhook.validation import configs, hardware
from hack.chart import helm

_GIB = 1 << 30
CLASSES = {
    device_class.name: device_class
    for device_class in map(device_classes.parse, helm.usual("DeviceClass"))
}
KNOWN = configs.ClusterFacts(names.DRIVER, CLASSES, hardware.Hardware(80 * _GIB, 40 * _GIB))
MPS, SLICED, MIG = "gpu-mps.ration.dev", "gpu-timeslice.ration.dev", "gpu-mig.ration.dev"
SLICE = "gpu-slice.ration.dev"
