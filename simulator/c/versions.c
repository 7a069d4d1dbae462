/* NVML's functions of older versions: their structures are shorter, and they do the same. */
#include <string.h>

#include "client.h"

#define DEVICE nvmlDevice_t device

EXPORT nvmlReturn_t nvmlDeviceGetCount(unsigned *count) { return nvmlDeviceGetCount_v2(count); }
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}
EXPORT nvmlReturn_t nvmlGetBlacklistDeviceCount(unsigned *count)
{
    return nvmlGetExcludedDeviceCount(count);
}
EXPORT nvmlReturn_t nvmlGetBlacklistDeviceInfoByIndex(unsigned index, nvmlExcludedDeviceInfo_t *info)
{
    return nvmlGetExcludedDeviceInfoByIndex(index, info);
}

/* The structure of versions 1 and 2 ends before the long bus id. */
static nvmlReturn_t shorter_pci(nvmlReturn_t code, const nvmlPciInfo_t *from, void *pci)
{
    if (code == NVML_SUCCESS)
        memcpy(pci, from, offsetof(nvmlPciInfo_t, busId));
    return code;
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v2(DEVICE, void *pci)
{
    nvmlPciInfo_t found;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return shorter_pci(nvmlDeviceGetPciInfo_v3(device, &found), &found, pci);
}
EXPORT nvmlReturn_t nvmlDeviceGetPciInfo(DEVICE, void *pci)
{
    return nvmlDeviceGetPciInfo_v2(device, pci);
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo(DEVICE, unsigned link, void *pci)
{
    nvmlPciInfo_t found;
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return shorter_pci(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &found), &found, pci);
}

typedef nvmlReturn_t processes_of(DEVICE, unsigned *count, nvmlProcessInfo_t *infos);
enum { MOST_PROCESSES = 1024 };

/* The structure of version 1 is a pid and its memory. */
static nvmlReturn_t shorter_processes(processes_of *ask, DEVICE, unsigned *count,
                                      nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessInfo_t all[MOST_PROCESSES];
    unsigned found = MOST_PROCESSES;
    if (count == NULL || (infos == NULL && *count > 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ask(device, &found, all);
    if (code != NVML_SUCCESS)
        return code;
    if (found > *count)
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found && code == NVML_SUCCESS; i++)
        infos[i] = (nvmlProcessInfo_v1_t){all[i].pid, all[i].usedGpuMemory};
    *count = found;
    return code;
}

/* The structure of version 2 is that of version 3. */
#define PROCESSES(function)                                                              \
    EXPORT nvmlReturn_t function##_v2(DEVICE, unsigned *count, nvmlProcessInfo_t *infos) \
    {                                                                                    \
        return function##_v3(device, count, infos);                                      \
    }                                                                                    \
    EXPORT nvmlReturn_t function(DEVICE, unsigned *count, nvmlProcessInfo_v1_t *infos)   \
    {                                                                                    \
        return shorter_processes(function##_v3, device, count, infos);                   \
    }

PROCESSES(nvmlDeviceGetComputeRunningProcesses)
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses)
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses)

/* The structure of version 1 ends before the instances' ids. */
EXPORT nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, void *data, unsigned timeout)
{
    nvmlEventData_t found;
    if (data == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = nvmlEventSetWait_v2(set, &found, timeout);
    if (code == NVML_SUCCESS)
        memcpy(data, &found, offsetof(nvmlEventData_t, gpuInstanceId));
    return code;
}
