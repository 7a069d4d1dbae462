"""Values that Helm refuses, and in which words."""

import re

import pytest

from tests.contract.chart import rendered
from tests.contract.chart.rendered import setting

pytestmark = rendered.BUILDS_HELM


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("contoller=3", "additional properties 'contoller' not allowed"),
        ("controller.replica=3", "additional properties 'replica' not allowed"),
        ("controller.replicas=0", "minimum: got 0, want 1"),
        ("controller.replicas=two", "got string, want integer"),
        ("controller.writeWorkers=65", "maximum: got 65, want 64"),
        ("controller.unschedulableTimeoutSeconds=0", "exclusiveMinimum: got 0, want 0"),
        ("controller.relistSeconds=9", "minimum: got 9, want 10"),
        ("controller.logLevel=loud", "value must be one of 'debug', 'info', 'warning', 'error'"),
        ("controller.extraArgs={verbose}", "does not match pattern '^--'"),
        ("allocator=nobody", "value must be one of 'controller', 'scheduler'"),
        ("controller.nodes.maxInFlight=0", "minimum: got 0, want 1"),
        ("controller.nodes.ttl=20", "got number, want string"),
        ("controller.nodes.shapes[0].gpus=0", "minimum: got 0, want 1"),
        ("controller.nodes.shapes[0].gpu=8", "additional properties 'gpu' not allowed"),
        ("controller.nodes.interruptionTaints={not a key}", "does not match pattern"),
        ("controller.workloadMix[0].face=monitor", "value must be one of 'whole', 'mig', 'mps'"),
        ("controller.workloadMix[0].weight=0", "exclusiveMinimum: got 0, want 0"),
        ("controller.workloadMix[0].cpu=64 cores", "does not match pattern"),
        ("controller.managedDrivers[0].nodeSelector=a", "missing property 'name'"),
        ("controller.managedDrivers[0].name=GPU", "does not match pattern"),
        ("controller.workloadMix[0].gpu=8", "additional properties 'gpu' not allowed"),
        ("kubeletPlugin.shareDomain=namespace", "value must be one of 'none', 'cluster'"),
        ("kubeletPlugin.xidClass={79=ignored}", "does not match pattern"),
        ("kubeletPlugin.cdiHook=nvidia-cdi-hook", "does not match pattern"),
        ("kubeletPlugin.evictOnGpuFault=maybe", "got string, want boolean"),
        ("kubeletPlugin.offerings[0].faces={vgpu}", "value must be one of"),
        ("kubeletPlugin.offerings[0].mpsShares=49", "maximum: got 49, want 48"),
        ("kubeletPlugin.offerings[0].node=a", "additional properties 'node' not allowed"),
        ("mps.desiredStatePollSeconds=11", "maximum: got 11, want 10"),
        ("driverRoot=run/nvidia", "does not match pattern"),
        ("driverRoot=/run/nvidia/", "does not match pattern"),
        ("driverRoot=automatic", "does not match pattern"),
        ("stateDir=/a/../../etc", "does not match pattern"),
        ("driverName=GPU.ration.dev", "does not match pattern"),
        ("image.repository=", "minLength: got 0, want 1"),
        ("image.digest=sha256:12", "does not match pattern"),
        ("image.pullPolicy=Sometimes", "value must be one of 'Always', 'IfNotPresent', 'Never'"),
        ("deviceClasses.gpu.extendedResourceName=gpu", "does not match pattern"),
        ("deviceClasses.slice.isolation=some", "value must be one of 'hardware', 'limits', 'none'"),
        ("deviceClasses.mig.profiles[0].profile=small", "does not match pattern"),
        ("deviceClasses.mig.profiles[0].name=x", "missing property 'profile'"),
        ("serviceMonitor.interval=30", "got number, want string"),
        ("serviceMonitor.interval=often", "does not match pattern"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_its_name(value: str, words: str) -> None:
    refusal = rendered.refusal(*setting(value))
    assert words in refusal
    path = re.split(r"[.\[\]]+", value.partition("=")[0].removesuffix("]"))
    table = "".join(f"/{part}" for part in path[:-1])
    assert f"at '{table}/{path[-1]}" in refusal or f"at '{table}'" in refusal


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (("controller.enabled=false",), "nobody would allocate a GPU"),
        (("mps.enabled=false",), "nobody would run MPS daemons"),
        (("admission.tls.mode=secret",), "admission.tls.caBundle have to say"),
        (
            ("admission.convert=on", "deviceClasses.mig.enabled=false"),
            "of which one is not enabled",
        ),
        (
            (
                "mps.enabled=false",
                "deviceClasses.mps.enabled=false",
                "kubeletPlugin.offerings[0].faces={whole,mps}",
            ),
            "leave mps out of faces",
        ),
        (
            tuple(
                f"controller.nodes.shapes[{index}].{entry}"
                for index in range(2)
                for entry in ("name=h100", "labels.a=b", "gpus=8")
            ),
            "controller.nodes.shapes has two shapes h100",
        ),
        (
            ("controller.managedDrivers[0].name=gpu.ration.dev",),
            "names gpu.ration.dev, which is Ration's own driver",
        ),
        (
            ("controller.managedDrivers[0].name=a", "controller.managedDrivers[1].name=a"),
            "controller.managedDrivers names a twice",
        ),
        (("controller.workloadMix[0].percent=25",), "has percent of a whole GPU: say face"),
        (("controller.workloadMix[0].face=mps",), "face mps, which is percent of one GPU"),
        (
            (
                "controller.workloadMix[0].face=mig",
                "controller.workloadMix[0].percent=12",
                "controller.workloadMix[0].gpus=0",
            ),
            "face mig, which is percent of one GPU: say percent, and leave out gpus",
        ),
        (
            ("controller.workloadMix[0].gpus=0", "controller.workloadMix[0].products={H100}"),
            "names products of a pod that asks no GPU",
        ),
        (
            (r"mps.podLabels.app\.kubernetes\.io/name=mine",),
            "mps.podLabels holds app.kubernetes.io/name, which the chart sets",
        ),
        (
            ("kubeletPlugin.serviceAccount.create=false",),
            "kubeletPlugin.serviceAccount.name is empty",
        ),
        (
            ("controller.serviceAccount.name=gpu", "mps.serviceAccount.name=gpu"),
            "two components have the same service account",
        ),
        (
            ("deviceClasses.mps.name=gpu.ration.dev",),
            "two DeviceClasses have the same name: gpu-mig.ration.dev, gpu-slice.ration.dev,",
        ),
        (
            (
                "deviceClasses.gpu.extendedResourceName=nvidia.com/gpu",
                "deviceClasses.mps.extendedResourceName=nvidia.com/gpu",
            ),
            "two DeviceClasses have the same extendedResourceName",
        ),
        (
            (
                "deviceClasses.mig.profiles[0].profile=1g.10gb",
                "deviceClasses.mig.profiles[1].profile=1g.10gb",
            ),
            "two DeviceClasses have the same name",
        ),
    ],
)
def test_values_that_contradict_each_other_are_refused_with_a_sentence(
    values: tuple[str, ...], words: str
) -> None:
    assert words in rendered.refusal(*setting(*values))
