"""The gates: what each asks, and the commands that show it. Pure."""

from dataclasses import dataclass

_PYTEST = (".venv/bin/python", "-m", "pytest", "-q", "-p", "no:randomly")
LONG = ("--timeout", "3600")


@dataclass(frozen=True, slots=True)
class Command:
    """Run in the root of the checkout; `words` as for a shell. Exit code 0: it is shown.

    `minutes` on two cores that do nothing else; `environment` beside what is there.
    """

    words: tuple[str, ...]
    minutes: float
    environment: tuple[tuple[str, str], ...] = ()

    @property
    def text(self) -> str:
        """To paste."""
        previous = [f"{name}={value}" for name, value in self.environment]
        return " ".join([*previous, *self.words])


@dataclass(frozen=True, slots=True)
class Gate:
    """One of them, by number."""

    number: int
    asks: str
    commands: tuple[Command, ...]


def tests(minutes: float, *words: str, **environment: str) -> Command:
    """Tests of files, or some of their tests."""
    return Command((*_PYTEST, *words), minutes, tuple(environment.items()))


def _agreement(minutes: float, *words: str, **environment: str) -> Command:
    """The campaign of plain workloads, three rounds at a time, with everything against it."""
    against = ("--lanes", "3", "--busy", "--delay", "--faults", "--minutes", "120")
    program = (".venv/bin/python", "-m", "tests.agreement")
    return Command((*program, *words, *against), minutes, tuple(environment.items()))


GATES = (
    Gate(
        1,
        "Killed at every point of a call, and two hundred times at moments that nobody chose, "
        "under every face at once: records, CDI specs, hardware and API agree afterwards",
        (
            tests(6, *LONG, "tests/e2e/test_kills.py"),
            tests(
                1,
                "tests/unit/kubeletplugin/test_failpoints.py",
                "tests/properties/test_checkpoint.py",
                "tests/component/kubeletplugin/test_kills.py",
            ),
        ),
    ),
    Gate(
        2,
        "Nothing is ever given or prepared twice, judged by the hardware: random sequences, five "
        "hundred GPUs given on before their node let go of them, five hundred faults under load",
        (
            tests(
                8,
                *LONG,
                "tests/properties/test_allocation.py",
                "tests/properties/test_travel.py",
                "tests/properties/test_mig_claims.py",
                RATION_EXAMPLES="1000",
            ),
            tests(1, "tests/component/kubeletplugin/prepare/test_reuse.py", RATION_REUSES="63"),
            Command(("make", "chaos"), 50),
        ),
    ),
    Gate(
        3,
        "Upgraded and rolled back under claims in use, with the records of every release, and "
        "slices stay as they are",
        (
            tests(8, *LONG, "tests/e2e/test_upgrade.py"),
            tests(
                1,
                "tests/unit/kubeletplugin/records/test_checkpoint.py",
                "tests/component/kubeletplugin/publish/test_rolling_update.py",
            ),
        ),
    ),
    Gate(
        4,
        "A reboot and wiped CDI specs are got over by nobody's hand",
        (tests(4, *LONG, "tests/e2e/test_restarts.py"),),
    ),
    Gate(
        5,
        "Claims that are gone, in whatever state, are reclaimed within three minutes, and none "
        "while the API server errs",
        (
            tests(
                1,
                "tests/properties/test_reclaim.py",
                "tests/unit/kubeletplugin/recovery/test_claim_gc.py",
                "tests/component/kubeletplugin/recovery/test_claim_gc.py",
            ),
            tests(4, *LONG, "tests/e2e/test_reclaim.py"),
        ),
    ),
    Gate(
        6,
        "Unprepare works while the API server is away",
        (
            tests(
                1,
                "tests/unit/kubeletplugin/prepare/test_preparer.py",
                "tests/unit/kubeletplugin/prepare/test_preparer_mig.py",
                "-k",
                "needs_no_api",
            ),
            tests(3, *LONG, "tests/e2e/test_reclaim.py", "-k", "away"),
        ),
    ),
    Gate(
        7,
        "Whatever breaks between us and the API server: requests stay few, and caches true",
        (
            tests(3, "tests/component/kube", "tests/properties/test_watching.py"),
            tests(10, *LONG, "tests/e2e/test_churn.py"),
        ),
    ),
    Gate(
        8,
        "A node's token changes nothing of another node, and no right is granted that is not used",
        (
            tests(3, *LONG, "tests/e2e/test_rights.py"),
            tests(6, *LONG, "tests/e2e/test_rights_used.py"),
        ),
    ),
    Gate(
        9,
        "Nothing of others' words gets into a container but what may be in one, and no decoder "
        "ends in anything but a value or a typed error",
        (
            tests(3, "tests/properties/test_cdi.py", "tests/properties/test_configs.py"),
            Command((".venv-fuzz/bin/python", "-m", "tests.fuzz", "--seconds", "60"), 12),
        ),
    ),
    Gate(
        10,
        "Namespaces share no GPU unless both classes say so, on the node as well",
        (
            tests(
                1,
                "tests/unit/kubeletplugin/prepare/test_preparer_shares.py",
                "tests/unit/resources/sharing/test_compatibility.py",
                "tests/unit/scheduling/allocator/sharing_rules/test_device_filter.py",
            ),
            tests(2, *LONG, "tests/e2e/test_namespaces.py"),
        ),
    ),
    Gate(
        11,
        "A leader that was frozen, two that both believe they lead, one that sees late: nothing "
        "is given twice",
        (
            tests(3, *LONG, "tests/e2e/test_leadership.py"),
            tests(10, *LONG, "tests/e2e/test_split_brain.py"),
        ),
    ),
    Gate(
        12,
        "36,000 claims and 2,500 pods while things break, and 20,000 pods for the controllers: "
        "nothing lost, and memory, files and threads flat",
        (
            Command((".venv/bin/python", "-m", "tests.soak", "--cycles", "36000"), 65),
            Command((".venv/bin/python", "-m", "tests.soak.controllers"), 40),
            Command((".venv/bin/python", "-m", "tests.soak.pods"), 55),
        ),
    ),
    Gate(
        13,
        "The black-box suite between a real kubelet and the plugin, for us and for a second "
        "driver; the same contract with a played kubelet in every test run",
        (
            Command(("make", "blackbox"), 25),
            Command(("make", "blackbox", "K8S=1.36"), 25),
            Command(("make", "blackbox", "SUBJECT=minimal"), 15),
            tests(4, "tests/component/kubeletplugin"),
        ),
    ),
    Gate(
        14,
        "Plain Deployments, StatefulSets and Jobs beside kube-scheduler, while leaders die and "
        "requests are late: no pod bound away from its claim, none stuck, nothing held for nobody",
        (
            _agreement(90, "--rounds", "200", "--seed", "607"),
            _agreement(30, "--rounds", "60", "--seed", "1036", K8S="1.36"),
            tests(2, "tests/properties/test_agreement.py"),
            Command(("make", "filters", "SEEDS=30000"), 8),
        ),
    ),
    Gate(
        15,
        "NVML hangs on one GPU for ten minutes, at every moment: the others go on, the GPU is "
        "tainted within 15 s, and no probe restarts the plugin",
        (
            tests(
                80,
                *LONG,
                "tests/component/kubeletplugin/test_hangs.py",
                RATION_HANG_SECONDS="600",
            ),
        ),
    ),
    Gate(
        16,
        "A tenant with root in a container and a share of a GPU attacks for ten minutes: no file "
        "of the host changed, no daemon but the tenant's own hurt, disk bounded",
        (tests(13, *LONG, "tests/e2e/test_tenant.py", RATION_ATTACK_SECONDS="600"),),
    ),
    Gate(
        17,
        "NVIDIA's own programs of several drivers, on libraries that are not the image's, and "
        "programs of others that read NVML",
        (
            Command(("make", "real-programs"), 3),
            Command(("make", "index-programs"), 3),
        ),
    ),
)
