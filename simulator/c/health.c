/* NVML's calls about events, errors and repairs. See nvml.c. */
#include <stddef.h>
#include <string.h>

#include "client.h"

#define ASK client_ask

EXPORT nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set)
{
    return ASK("event_set_create", ":d", set);
}
EXPORT nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) { return ASK("event_set_free", "d:", set); }
EXPORT nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, unsigned long long *types)
{
    return ASK("device_get_supported_event_types", "d:U", device, types);
}
EXPORT nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                             nvmlEventSet_t set)
{
    return ASK("device_register_events", "dUd:", device, types, set);
}
EXPORT nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout)
{
    if (data == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("event_set_wait", "du:dUUuu", set, timeout, &data->device, &data->eventType,
               &data->eventData, &data->gpuInstanceId, &data->computeInstanceId);
}

EXPORT nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, unsigned *current, unsigned *pending)
{
    return ASK("device_get_ecc_mode", "d:uu", device, current, pending);
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, unsigned error,
                                                unsigned counter, unsigned long long *count)
{
    return ASK("device_get_total_ecc_errors", "duu:U", device, error, counter, count);
}
EXPORT nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, unsigned error,
                                                    unsigned counter, unsigned location,
                                                    unsigned long long *count)
{
    return ASK("device_get_memory_error_counter", "duuu:U", device, error, counter, location, count);
}
EXPORT nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected,
                                              unsigned *uncorrected, unsigned *pending,
                                              unsigned *failed)
{
    return ASK("device_get_remapped_rows", "d:uuuu", device, corrected, uncorrected, pending, failed);
}
EXPORT nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device,
                                                      nvmlRowRemapperHistogramValues_t *banks)
{
    if (banks == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_row_remapper_histogram", "d:uuuuu", device, &banks->max, &banks->high,
               &banks->partial, &banks->low, &banks->none);
}
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned *pending)
{
    return ASK("device_get_retired_pages_pending_status", "d:u", device, pending);
}

typedef struct {
    unsigned version;
    unsigned long long counts[11]; /* by time, kind and place; none is simulated */
    unsigned bThresholdExceeded;
} nvmlEccSramErrorStatus_v1_t;

typedef struct {
    unsigned version, unrepairableMemory;
} nvmlUnrepairableMemory_v1_t;

EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                    nvmlEccSramErrorStatus_v1_t *status)
{
    if (status == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (status->version != NVML_VERSION(*status, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    memset(status->counts, 0, sizeof status->counts);
    return ASK("device_get_sram_ecc_error_status", "d:u", device, &status->bThresholdExceeded);
}

EXPORT nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(nvmlDevice_t device,
                                                           nvmlUnrepairableMemory_v1_t *memory)
{
    if (memory == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (memory->version != NVML_VERSION(*memory, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ASK("device_get_unrepairable_memory_flag", "d:u", device, &memory->unrepairableMemory);
}

EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                        unsigned long long *millijoules)
{
    return ASK("device_get_total_energy_consumption", "d:U", device, millijoules);
}
