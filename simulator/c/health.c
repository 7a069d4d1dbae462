/* NVML's calls about events, errors and repairs. See nvml.c. */
#include <stddef.h>
#include <string.h>

#include "calls.h"

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

EXPORT nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device,
                                                    nvmlEccSramErrorStatus_t *status)
{
    if (status == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (status->version != NVML_VERSION(*status, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ASK("device_get_sram_ecc_error_status", "d:UUUUUUUUUUUu", device,
               &status->aggregateUncParity, &status->aggregateUncSecDed, &status->aggregateCor,
               &status->volatileUncParity, &status->volatileUncSecDed, &status->volatileCor,
               &status->aggregateUncBucketL2, &status->aggregateUncBucketSm,
               &status->aggregateUncBucketPcie, &status->aggregateUncBucketMcu,
               &status->aggregateUncBucketOther, &status->bThresholdExceeded);
}
EXPORT nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, nvmlRepairStatus_t *status)
{
    if (status == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (status->version != NVML_VERSION(*status, 1))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return ASK("device_get_repair_status", "d:uu", device, &status->bChannelRepairPending,
               &status->bTpcRepairPending);
}
EXPORT nvmlReturn_t nvmlDeviceGetUnrepairableMemoryFlag_v1(
    nvmlDevice_t device, nvmlUnrepairableMemoryStatus_v1_t *status)
{
    if (status == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_unrepairable_memory_flag", "d:u", device, &status->bUnrepairableMemory);
}

/* As NVML: with too small an array the needed count comes back and nothing is written. */
static nvmlReturn_t retired(nvmlDevice_t device, unsigned cause, unsigned *count,
                            unsigned long long *addresses, unsigned long long *times)
{
    struct line reply = {0};
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK("device_get_retired_pages", "du:*", device, cause, &reply);
    if (code != NVML_SUCCESS)
        return code;
    unsigned found = (unsigned)line_next_number(&reply);
    if (found > *count)
        code = NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned i = 0; i < found && code == NVML_SUCCESS && addresses != NULL; i++) {
        addresses[i] = line_next_number(&reply);
        if (times != NULL)
            times[i] = 0;
    }
    *count = found;
    line_free(&reply);
    return code;
}
EXPORT nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, unsigned cause, unsigned *count,
                                              unsigned long long *addresses)
{
    return retired(device, cause, count, addresses, NULL);
}
EXPORT nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device,
                                                        unsigned long long *millijoules)
{
    return ASK("device_get_total_energy_consumption", "d:U", device, millijoules);
}
