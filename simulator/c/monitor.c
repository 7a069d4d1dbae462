/* NVML's calls that monitoring programs start with, see simulator/monitor_calls.py. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "calls.h"

enum { BITS = sizeof(unsigned long) * CHAR_BIT };

#define MASK(function, call)                                                     \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned long long *mask)  \
    {                                                                            \
        return ASK(call, "d:U", device, mask);                                   \
    }

EXPORT nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char *text, unsigned length)
{
    return ASK("device_get_vbios_version", "d:s", device, text, length);
}
/* The caller's buffer has no length: 80 bytes by the header. */
EXPORT nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *text)
{
    return ASK("device_get_gsp_firmware_version", "d:s", device, text, 80U);
}
NUMBERS(nvmlDeviceGetGspFirmwareMode, "device_get_gsp_firmware_mode")
NUMBER(nvmlDeviceGetBoardId, "device_get_board_id")
NUMBER(nvmlDeviceGetMultiGpuBoard, "device_get_multi_gpu_board")
NUMBER(nvmlDeviceGetBusType, "device_get_bus_type")
NUMBER(nvmlDeviceGetNumGpuCores, "device_get_num_gpu_cores")
NUMBER(nvmlDeviceGetPcieSpeed, "device_get_pcie_speed")
NUMBER(nvmlDeviceGetPcieLinkMaxSpeed, "device_get_pcie_link_max_speed")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "device_get_gpu_max_pcie_link_generation")
NUMBER(nvmlDeviceGetPcieReplayCounter, "device_get_pcie_replay_counter")
NUMBERS(nvmlDeviceGetJpgUtilization, "device_get_jpg_utilization")
NUMBERS(nvmlDeviceGetOfaUtilization, "device_get_ofa_utilization")
MASK(nvmlDeviceGetCurrentClocksEventReasons, "device_get_current_clocks_event_reasons")
MASK(nvmlDeviceGetCurrentClocksThrottleReasons, "device_get_current_clocks_event_reasons")
MASK(nvmlDeviceGetSupportedClocksEventReasons, "device_get_supported_clocks_event_reasons")
MASK(nvmlDeviceGetSupportedClocksThrottleReasons, "device_get_supported_clocks_event_reasons")

OF_PART(nvmlDeviceGetPcieThroughput, "device_get_pcie_throughput")
OF_PART(nvmlDeviceGetTemperatureThreshold, "device_get_temperature_threshold")

EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link,
                                                  unsigned capability, unsigned *has)
{
    return ASK("device_get_nv_link_capability", "duu:u", device, link, capability, has);
}
EXPORT nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link,
                                                    unsigned counter, unsigned long long *count)
{
    return ASK("device_get_nv_link_error_counter", "duu:U", device, link, counter, count);
}

/* Bits that do not fit are left out, as the header says. */
static void set_bits(unsigned long *set, unsigned size, unsigned first, unsigned count)
{
    memset(set, 0, size * sizeof *set);
    for (unsigned bit = first; bit < first + count && bit < size * BITS; bit++)
        set[bit / BITS] |= 1UL << bit % BITS;
}

EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, unsigned size, unsigned long *set)
{
    unsigned first, count;
    if (set == NULL || size == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK("device_get_cpu_affinity", "d:uu", device, &first, &count);
    if (code == NVML_SUCCESS)
        set_bits(set, size, first, count);
    return code;
}
EXPORT nvmlReturn_t nvmlDeviceGetCpuAffinityWithinScope(nvmlDevice_t device, unsigned size,
                                                        unsigned long *set, unsigned scope)
{
    return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : nvmlDeviceGetCpuAffinity(device, size, set);
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned size,
                                                unsigned long *set, unsigned scope)
{
    unsigned node;
    if (set == NULL || size == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK("device_get_memory_affinity", "du:u", device, scope, &node);
    if (code == NVML_SUCCESS)
        set_bits(set, size, node, 1);
    return code;
}

/* With too small an array the needed count comes back and nothing is written. */
static nvmlReturn_t take_clocks(nvmlReturn_t code, struct line *reply, unsigned *count,
                                unsigned *clocks)
{
    unsigned found = code == NVML_SUCCESS ? (unsigned)line_next_number(reply) : 0;
    if (code == NVML_SUCCESS && (clocks == NULL || found > *count))
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found && code == NVML_SUCCESS; i++)
        clocks[i] = (unsigned)line_next_number(reply);
    *count = found;
    line_free(reply);
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned *count,
                                                       unsigned *clocks)
{
    struct line reply = {0};
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK("device_get_supported_memory_clocks", "d:*", device, &reply);
    return take_clocks(code, &reply, count, clocks);
}
EXPORT nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned memory,
                                                         unsigned *count, unsigned *clocks)
{
    struct line reply = {0};
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK("device_get_supported_graphics_clocks", "du:*", device, memory, &reply);
    return take_clocks(code, &reply, count, clocks);
}

/* Of a process of the caller's own pid namespace, as far as it may look. */
EXPORT nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length)
{
    char path[32], text[1024];
    if (name == NULL || length == 0)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (client_stub() == NVML_ERROR_UNINITIALIZED)
        return NVML_ERROR_UNINITIALIZED;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "r");
    size_t found = file == NULL ? 0 : fread(text, 1, sizeof text - 1, file);
    if (file != NULL)
        fclose(file);
    if (found == 0)
        return NVML_ERROR_NOT_FOUND;
    text[found] = '\0';
    if (strlen(text) >= length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(name, text);
    return NVML_SUCCESS;
}
