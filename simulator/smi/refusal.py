"""How `nvidia-smi` says no: words on standard output, and a status that is NVML's code."""

from simulator import codes

WORDS = {
    codes.Return.UNINITIALIZED: "Uninitialized",
    codes.Return.INVALID_ARGUMENT: "Invalid Argument",
    codes.Return.NOT_SUPPORTED: "Not Supported",
    codes.Return.NO_PERMISSION: "Insufficient Permissions",
    codes.Return.NOT_FOUND: "Not Found",
    codes.Return.DRIVER_NOT_LOADED: "Driver Not Loaded",
    codes.Return.GPU_IS_LOST: "GPU is lost",
    codes.Return.RESET_REQUIRED: "Reset Required",
    codes.Return.IN_USE: "In use by another client",
    codes.Return.INSUFFICIENT_RESOURCES: "Insufficient Resources",
}
USAGE = 2


class RefusedError(Exception):
    """What to print last, newline and all, and the status to end with."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.text = text
        self.status = status


def words(code: int) -> str:
    """As `nvmlErrorString` has it."""
    return WORDS.get(codes.Return(code), "Unknown Error")


def usage(text: str) -> RefusedError:
    """A command line that is not of the grammar."""
    return RefusedError(f"{text} Please run 'nvidia-smi -h' for help.\n", USAGE)
