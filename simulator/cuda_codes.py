"""CUDA's results, as far as a simulated client meets them (source: `CUresult` of cuda.h)."""

from enum import IntEnum


class Result(IntEnum):
    """`CUresult`."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    DEVICE_UNAVAILABLE = 46
    NO_DEVICE = 100
    INVALID_DEVICE = 101
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    SYSTEM_DRIVER_MISMATCH = 803
    MPS_CONNECTION_FAILED = 805
    MPS_RPC_FAILURE = 806
    MPS_SERVER_NOT_READY = 807
    MPS_MAX_CLIENTS_REACHED = 808
    MPS_MAX_CONNECTIONS_REACHED = 809
    MPS_CLIENT_TERMINATED = 810

    @property
    def constant(self) -> str:
        """As cuda.h spells it."""
        return "CUDA_SUCCESS" if self is Result.SUCCESS else f"CUDA_ERROR_{self.name}"


class CudaError(Exception):
    """A CUDA call that did not succeed; `words` say what was in the way."""

    def __init__(self, code: Result, words: str) -> None:
        super().__init__(f"{code.constant}: {words}")
        self.code = code
        self.words = words
