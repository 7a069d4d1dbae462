/* NVML's calls about a board: clocks, BAR1, the PCIe link, addressing, the fabric. See nvml.c. */
#include <stdio.h>
#include <string.h>

#include "calls.h"

OF_PART(nvmlDeviceGetClockInfo, "device_get_clock_info")
OF_PART(nvmlDeviceGetMaxClockInfo, "device_get_max_clock_info")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "device_get_max_pcie_link_generation")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "device_get_max_pcie_link_width")
NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "device_get_curr_pcie_link_generation")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "device_get_curr_pcie_link_width")
NUMBER(nvmlDeviceGetFanSpeed, "device_get_fan_speed")
NUMBER(nvmlDeviceGetPerformanceState, "device_get_performance_state")
NUMBER(nvmlDeviceGetDisplayActive, "device_get_display_active")

EXPORT nvmlReturn_t nvmlDeviceGetDriverModel(nvmlDevice_t device, unsigned *current,
                                             unsigned *pending)
{
    return ASK("device_get_driver_model", "d:uu", device, current, pending);
}

EXPORT nvmlReturn_t nvmlDeviceGetDriverModel_v2(nvmlDevice_t device, unsigned *current,
                                                unsigned *pending)
{
    return nvmlDeviceGetDriverModel(device, current, pending);
}
EXPORT nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t *temperature)
{
    if (temperature == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (temperature->version != NVML_VERSION(*temperature, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ASK("device_get_temperature_v", "du:i", device, temperature->sensorType,
               &temperature->temperature);
}
EXPORT nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t *memory)
{
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_bar1_memory_info", "d:UUU", device, &memory->total, &memory->free,
               &memory->used);
}
EXPORT nvmlReturn_t nvmlDeviceGetAddressingMode(nvmlDevice_t device, nvmlDeviceAddressingMode_t *mode)
{
    if (mode == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (mode->version != NVML_VERSION(*mode, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ASK("device_get_addressing_mode", "d:u", device, &mode->value);
}

static nvmlReturn_t fabric(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    char cluster[33];
    unsigned state, summary, byte;
    nvmlReturn_t code =
        ASK("device_get_gpu_fabric_info", "d:siuuuu", device, cluster, (unsigned)sizeof cluster,
            &info->status, &info->cliqueId, &state, &info->healthMask, &summary);
    if (code != NVML_SUCCESS)
        return code;
    for (size_t i = 0; i < sizeof info->clusterUuid && sscanf(cluster + 2 * i, "%2x", &byte) == 1; i++)
        info->clusterUuid[i] = (unsigned char)byte;
    info->state = (unsigned char)state;
    info->healthSummary = (unsigned char)summary;
    return NVML_SUCCESS;
}
/* Version 2 is version 3 without its end. */
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfo_v3_t *info)
{
    enum { V2_SIZE = 0x24, V2 = 0x02000000 | V2_SIZE };
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != V2 && info->version != NVML_VERSION(*info, 3))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlGpuFabricInfo_v3_t v3 = {.version = info->version};
    nvmlReturn_t code = fabric(device, &v3);
    if (code == NVML_SUCCESS)
        memcpy(info, &v3, v3.version == V2 ? V2_SIZE : sizeof v3);
    return code;
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t *info)
{
    nvmlGpuFabricInfo_v3_t v3;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = fabric(device, &v3);
    if (code == NVML_SUCCESS) {
        memcpy(info->clusterUuid, v3.clusterUuid, sizeof v3.clusterUuid);
        info->status = v3.status;
        info->cliqueId = v3.cliqueId;
        info->state = v3.state;
    }
    return code;
}
/* Both versions have the same places. */
EXPORT nvmlReturn_t nvmlDeviceGetPlatformInfo(nvmlDevice_t device, nvmlPlatformInfo_t *info)
{
    char chassis[sizeof info->chassisSerialNumber];
    unsigned slot, tray, host, peer, module;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_VERSION(*info, 1) && info->version != NVML_VERSION(*info, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t code = ASK("device_get_platform_info", "d:suuuuu", device, chassis,
                            (unsigned)sizeof chassis, &slot, &tray, &host, &peer, &module);
    if (code != NVML_SUCCESS)
        return code;
    memset(info->ibGuid, 0, sizeof info->ibGuid);
    memset(info->chassisSerialNumber, 0, sizeof info->chassisSerialNumber);
    memcpy(info->chassisSerialNumber, chassis, strlen(chassis));
    info->slotNumber = (unsigned char)slot;
    info->trayIndex = (unsigned char)tray;
    info->hostId = (unsigned char)host;
    info->peerType = (unsigned char)peer;
    info->moduleId = (unsigned char)module;
    return NVML_SUCCESS;
}
