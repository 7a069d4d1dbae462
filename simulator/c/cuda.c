/* libcuda.so.1 as far as its file goes: a driver root without one is not whole. */
#include "nvml.h"

enum { CUDA_ERROR_NOT_INITIALIZED = 3, CUDA_ERROR_NOT_SUPPORTED = 801 };

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}
EXPORT int cuDriverGetVersion(int *version)
{
    (void)version;
    return CUDA_ERROR_NOT_INITIALIZED;
}
