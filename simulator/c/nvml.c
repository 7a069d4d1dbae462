/* libnvidia-ml.so.1: each function names a call of simulator/library.py and the shape of its
   arguments and results (client.h). What is not here answers NOT_SUPPORTED, and what is newer than
   the machine's driver is no symbol of its library (exports.py). */
#include "nvml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"

EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned flags) { return client_init(flags); }
EXPORT nvmlReturn_t nvmlInit_v2(void) { return client_init(0); }
EXPORT nvmlReturn_t nvmlInit(void) { return client_init(0); }
EXPORT nvmlReturn_t nvmlShutdown(void) { return client_shutdown(); }

EXPORT const char *nvmlErrorString(nvmlReturn_t code)
{
    switch (code) {
    case NVML_SUCCESS:
        return "Success";
    case NVML_ERROR_UNINITIALIZED:
        return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
        return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
        return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
        return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
        return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
        return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
        return "Driver Not Loaded";
    case NVML_ERROR_FUNCTION_NOT_FOUND:
        return "Function Not Found";
    case NVML_ERROR_GPU_IS_LOST:
        return "GPU is lost";
    case NVML_ERROR_TIMEOUT:
        return "Timeout";
    case NVML_ERROR_RESET_REQUIRED:
        return "GPU requires reset";
    case NVML_ERROR_IN_USE:
        return "In use by another client";
    case NVML_ERROR_INSUFFICIENT_RESOURCES:
        return "Insufficient Resources";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
        return "Driver/library version mismatch";
    case NVML_ERROR_MEMORY:
        return "Insufficient Memory";
    case NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
        return "Argument version mismatch";
    default:
        return "Unknown Error";
    }
}

EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    return ASK("system_get_driver_version", ":s", version, length);
}
EXPORT nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length)
{
    return ASK("system_get_nvml_version", ":s", version, length);
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return ASK("system_get_cuda_driver_version", ":i", version);
}
EXPORT nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    return nvmlSystemGetCudaDriverVersion_v2(version);
}
EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    return ASK("device_get_count", ":u", count);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    return ASK("device_get_handle_by_index", "u:d", index, device);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    return ASK("device_get_handle_by_uuid", "s:d", uuid, device);
}
EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    return ASK("device_get_handle_by_pci_bus_id", "s:d", bus_id, device);
}

TEXT(nvmlDeviceGetName, "device_get_name")
TEXT(nvmlDeviceGetSerial, "device_get_serial")
TEXT(nvmlDeviceGetUUID, "device_get_uuid")
NUMBER(nvmlDeviceGetBrand, "device_get_brand")
NUMBER(nvmlDeviceGetIndex, "device_get_index")
NUMBER(nvmlDeviceGetMinorNumber, "device_get_minor_number")
NUMBER(nvmlDeviceGetModuleId, "device_get_module_id")
NUMBER(nvmlDeviceGetArchitecture, "device_get_architecture")
NUMBER(nvmlDeviceGetPersistenceMode, "device_get_persistence_mode")
NUMBER(nvmlDeviceGetComputeMode, "device_get_compute_mode")
NUMBER(nvmlDeviceGetVirtualizationMode, "device_get_virtualization_mode")
NUMBER(nvmlDeviceGetPowerUsage, "device_get_power_usage")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "device_get_enforced_power_limit")
NUMBER(nvmlDeviceGetPowerManagementLimit, "device_get_power_management_limit")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "device_get_power_management_default_limit")
NUMBERS(nvmlDeviceGetMigMode, "device_get_mig_mode")
NUMBERS(nvmlDeviceGetPowerManagementLimitConstraints,
        "device_get_power_management_limit_constraints")
OF_PART(nvmlDeviceGetTemperature, "device_get_temperature")
OF_PART(nvmlDeviceGetNvLinkState, "device_get_nv_link_state")
OF_PART(nvmlDeviceGetNvLinkVersion, "device_get_nv_link_version")
OF_PART(nvmlDeviceGetNvLinkRemoteDeviceType, "device_get_nv_link_remote_device_type")

EXPORT nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    return ASK("device_get_cuda_compute_capability", "d:ii", device, major, minor);
}
EXPORT nvmlReturn_t nvmlDeviceSetComputeMode(nvmlDevice_t device, unsigned mode)
{
    return ASK("device_set_compute_mode", "du:", device, mode);
}

EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != (0x02000000 | sizeof *memory))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ASK("device_get_memory_info", "d:UUUU", device, &memory->total, &memory->reserved,
               &memory->free, &memory->used);
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t v2 = {.version = 0x02000000 | sizeof v2};
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = nvmlDeviceGetMemoryInfo_v2(device, &v2);
    if (code == NVML_SUCCESS)
        *memory = (nvmlMemory_t){.total = v2.total, .free = v2.free, .used = v2.total - v2.free};
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_pci_info", "d:suuuuus", device, pci->busIdLegacy,
               (unsigned)sizeof pci->busIdLegacy, &pci->domain, &pci->bus, &pci->device,
               &pci->pciDeviceId, &pci->pciSubSystemId, pci->busId, (unsigned)sizeof pci->busId);
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                        nvmlPciInfo_t *pci)
{
    if (pci == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_nv_link_remote_pci_info", "du:suuuuus", device, link, pci->busIdLegacy,
               (unsigned)sizeof pci->busIdLegacy, &pci->domain, &pci->bus, &pci->device,
               &pci->pciDeviceId, &pci->pciSubSystemId, pci->busId, (unsigned)sizeof pci->busId);
}

EXPORT nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned *count)
{
    return ASK("get_excluded_device_count", ":u", count);
}
EXPORT nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned index, nvmlExcludedDeviceInfo_t *info)
{
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlPciInfo_t *pci = &info->pciInfo;
    return ASK("get_excluded_device_info_by_index", "u:suuuuuss", index, pci->busIdLegacy,
               (unsigned)sizeof pci->busIdLegacy, &pci->domain, &pci->bus, &pci->device,
               &pci->pciDeviceId, &pci->pciSubSystemId, pci->busId, (unsigned)sizeof pci->busId,
               info->uuid, (unsigned)sizeof info->uuid);
}

EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other,
                                                        unsigned *level)
{
    return ASK("device_get_topology_common_ancestor", "dd:u", one, other, level);
}
EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, unsigned index,
                                           unsigned *status)
{
    return ASK("device_get_p2p_status", "ddu:u", one, other, index, status);
}
EXPORT nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    if (rates == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_utilization_rates", "d:uu", device, &rates->gpu, &rates->memory);
}

EXPORT nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned *percent,
                                                    unsigned *period)
{
    return ASK("device_get_encoder_utilization", "d:uu", device, percent, period);
}
EXPORT nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned *percent,
                                                    unsigned *period)
{
    return ASK("device_get_decoder_utilization", "d:uu", device, percent, period);
}
/* With too small an array, or none, the needed count comes back and nothing is written. */
EXPORT nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
                                                    nvmlProcessUtilizationSample_t *samples,
                                                    unsigned *count, unsigned long long last_seen)
{
    struct line reply = {0};
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK("device_get_process_utilization", "dU:*", device, last_seen, &reply);
    unsigned found = code == NVML_SUCCESS ? (unsigned)line_next_number(&reply) : 0;
    if (samples == NULL ? found > 0 : found > *count)
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found && code == NVML_SUCCESS; i++) {
        samples[i].pid = (unsigned)line_next_number(&reply);
        samples[i].timeStamp = line_next_number(&reply);
        samples[i].smUtil = (unsigned)line_next_number(&reply);
        samples[i].memUtil = (unsigned)line_next_number(&reply);
        samples[i].encUtil = (unsigned)line_next_number(&reply);
        samples[i].decUtil = (unsigned)line_next_number(&reply);
    }
    *count = found;
    line_free(&reply);
    return code;
}
EXPORT nvmlReturn_t nvmlDeviceSetPersistenceMode(nvmlDevice_t device, unsigned mode)
{
    return ASK("device_set_persistence_mode", "du:", device, mode);
}

/* As NVML: with too small an array the needed count comes back and nothing is written. */
static nvmlReturn_t processes(const char *call, nvmlDevice_t device, unsigned *count,
                              nvmlProcessInfo_t *infos)
{
    struct line reply = {0};
    if (count == NULL || (infos == NULL && *count > 0))
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK(call, "d:*", device, &reply);
    if (code != NVML_SUCCESS)
        return code;
    unsigned found = (unsigned)line_next_number(&reply);
    if (found > *count)
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found && code == NVML_SUCCESS; i++) {
        infos[i].pid = (unsigned)line_next_number(&reply);
        infos[i].usedGpuMemory = line_next_number(&reply);
        infos[i].gpuInstanceId = (unsigned)line_next_number(&reply);
        infos[i].computeInstanceId = (unsigned)line_next_number(&reply);
    }
    *count = found;
    line_free(&reply);
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                            nvmlProcessInfo_t *infos)
{
    return processes("device_get_compute_running_processes", device, count, infos);
}
EXPORT nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                               nvmlProcessInfo_t *infos)
{
    return processes("device_get_mps_compute_running_processes", device, count, infos);
}
EXPORT nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                             nvmlProcessInfo_t *infos)
{
    return processes("device_get_graphics_running_processes", device, count, infos);
}

static char *numbers(const nvmlFieldValue_t *values, int count, int scopes)
{
    char *text = malloc((size_t)count * 11 + 1), *end = text;
    for (int i = 0; text != NULL && i < count; i++)
        end += sprintf(end, "%s%u", i ? "," : "", scopes ? values[i].scopeId : values[i].fieldId);
    return text;
}

EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                             nvmlFieldValue_t *values)
{
    struct line reply = {0};
    if (values == NULL || count < 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    char *fields = numbers(values, count, 0), *scopes = numbers(values, count, 1);
    nvmlReturn_t code = fields == NULL || scopes == NULL
                            ? NVML_ERROR_MEMORY
                            : ASK("device_get_field_values", "dss:*", device, fields, scopes, &reply);
    free(fields);
    free(scopes);
    if (code != NVML_SUCCESS)
        return code;
    line_next_number(&reply); /* as many as were asked for */
    for (int i = 0; i < count; i++) {
        values[i].timestamp = values[i].latencyUsec = 0;
        values[i].nvmlReturn = (nvmlReturn_t)line_next_number(&reply);
        values[i].valueType = (unsigned)line_next_number(&reply);
        values[i].value.ullVal = line_next_number(&reply);
    }
    line_free(&reply);
    return NVML_SUCCESS;
}
