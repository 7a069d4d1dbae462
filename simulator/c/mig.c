/* NVML's MIG calls. See nvml.c. */
#include <string.h>

#include "client.h"

#define ASK client_ask
#define PLACE(placement) &(placement)->start, &(placement)->size

EXPORT nvmlReturn_t nvmlDeviceSetMigMode(nvmlDevice_t device, unsigned mode, nvmlReturn_t *status)
{
    return ASK("device_set_mig_mode", "du:i", device, mode, status);
}

static nvmlReturn_t gpu_profile(nvmlDevice_t device, unsigned profile,
                                nvmlGpuInstanceProfileInfo_v2_t *info, unsigned *capabilities)
{
    return ASK("device_get_gpu_instance_profile_info", "du:uuuuuuuuuuUsu", device, profile,
               &info->id, &info->isP2pSupported, &info->sliceCount, &info->instanceCount,
               &info->multiprocessorCount, &info->copyEngineCount, &info->decoderCount,
               &info->encoderCount, &info->jpegCount, &info->ofaCount, &info->memorySizeMB,
               info->name, (unsigned)sizeof info->name, capabilities);
}
static nvmlReturn_t gpu_profile_v3(nvmlDevice_t device, unsigned profile,
                                   nvmlGpuInstanceProfileInfo_v3_t *info)
{
    unsigned capabilities;
    nvmlGpuInstanceProfileInfo_v2_t v2;
    nvmlReturn_t code = gpu_profile(device, profile, &v2, &capabilities);
    if (code != NVML_SUCCESS)
        return code;
    *info = (nvmlGpuInstanceProfileInfo_v3_t){
        info->version,   v2.id,           v2.sliceCount,   v2.instanceCount, v2.multiprocessorCount,
        v2.copyEngineCount, v2.decoderCount, v2.encoderCount, v2.jpegCount,   v2.ofaCount,
        v2.memorySizeMB, .capabilities = capabilities,
    };
    memcpy(info->name, v2.name, sizeof v2.name);
    return NVML_SUCCESS;
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, unsigned profile,
                                                         nvmlGpuInstanceProfileInfo_v2_t *info)
{
    unsigned capabilities;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version == NVML_VERSION(nvmlGpuInstanceProfileInfo_v3_t, 3))
        return gpu_profile_v3(device, profile, (nvmlGpuInstanceProfileInfo_v3_t *)info);
    if (info->version != NVML_VERSION(*info, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return gpu_profile(device, profile, info, &capabilities);
}
EXPORT nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfo(nvmlDevice_t device, unsigned profile,
                                                        nvmlGpuInstanceProfileInfo_t *info)
{
    unsigned capabilities;
    nvmlGpuInstanceProfileInfo_v2_t v2;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = gpu_profile(device, profile, &v2, &capabilities);
    if (code == NVML_SUCCESS)
        *info = (nvmlGpuInstanceProfileInfo_t){
            v2.id,           v2.isP2pSupported, v2.sliceCount, v2.instanceCount, v2.multiprocessorCount,
            v2.copyEngineCount, v2.decoderCount, v2.encoderCount, v2.jpegCount,  v2.ofaCount,
            v2.memorySizeMB,
        };
    return code;
}

static nvmlReturn_t placements(const char *call, nvmlDevice_t of, unsigned profile,
                               nvmlPlacement_t *found, unsigned *count)
{
    struct line reply = {0};
    if (count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK(call, "du:*", of, profile, &reply);
    if (code != NVML_SUCCESS)
        return code;
    *count = (unsigned)line_next_number(&reply);
    for (unsigned i = 0; i < *count && found != NULL; i++) {
        found[i].start = (unsigned)line_next_number(&reply);
        found[i].size = (unsigned)line_next_number(&reply);
    }
    line_free(&reply);
    return NVML_SUCCESS;
}
/* The caller's array holds as many as the profile has instances. */
static nvmlReturn_t instances(const char *call, nvmlDevice_t of, unsigned profile,
                              nvmlDevice_t *found, unsigned *count)
{
    struct line reply = {0};
    if (count == NULL || found == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = ASK(call, "du:*", of, profile, &reply);
    if (code != NVML_SUCCESS)
        return code;
    *count = (unsigned)line_next_number(&reply);
    for (unsigned i = 0; i < *count; i++)
        found[i] = client_handle(line_next(&reply));
    line_free(&reply);
    return NVML_SUCCESS;
}
static nvmlReturn_t create_at(const char *call, nvmlDevice_t in, unsigned profile,
                              const nvmlPlacement_t *at, nvmlDevice_t *made)
{
    if (at == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK(call, "duuu:d", in, profile, at->start, at->size, made);
}

#define PLACEMENTS(function, call)                                                              \
    EXPORT nvmlReturn_t function(nvmlDevice_t of, unsigned profile, nvmlPlacement_t *found,     \
                                 unsigned *count)                                               \
    {                                                                                           \
        return placements(call, of, profile, found, count);                                     \
    }
#define INSTANCES(function, call)                                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t of, unsigned profile, nvmlDevice_t *found,        \
                                 unsigned *count)                                               \
    {                                                                                           \
        return instances(call, of, profile, found, count);                                      \
    }
#define CREATE_AT(function, call)                                                               \
    EXPORT nvmlReturn_t function(nvmlDevice_t in, unsigned profile, const nvmlPlacement_t *at,  \
                                 nvmlDevice_t *made)                                            \
    {                                                                                           \
        return create_at(call, in, profile, at, made);                                          \
    }
#define HANDLE(function, call)                                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t of, unsigned number, nvmlDevice_t *found)         \
    {                                                                                           \
        return ASK(call, "du:d", of, number, found);                                            \
    }
#define COUNT(function, call)                                                                   \
    EXPORT nvmlReturn_t function(nvmlDevice_t of, unsigned profile, unsigned *count)            \
    {                                                                                           \
        return ASK(call, "du:u", of, profile, count);                                           \
    }
#define DESTROY(function, call)                                                                 \
    EXPORT nvmlReturn_t function(nvmlDevice_t instance)                                         \
    {                                                                                           \
        return ASK(call, "d:", instance);                                                       \
    }
#define NUMBER(function, call)                                                                  \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *number)                         \
    {                                                                                           \
        return ASK(call, "d:u", device, number);                                                \
    }

PLACEMENTS(nvmlDeviceGetGpuInstancePossiblePlacements_v2,
           "device_get_gpu_instance_possible_placements")
COUNT(nvmlDeviceGetGpuInstanceRemainingCapacity, "device_get_gpu_instance_remaining_capacity")
HANDLE(nvmlDeviceCreateGpuInstance, "device_create_gpu_instance")
CREATE_AT(nvmlDeviceCreateGpuInstanceWithPlacement, "device_create_gpu_instance_with_placement")
INSTANCES(nvmlDeviceGetGpuInstances, "device_get_gpu_instances")
HANDLE(nvmlDeviceGetGpuInstanceById, "device_get_gpu_instance_by_id")
DESTROY(nvmlGpuInstanceDestroy, "gpu_instance_destroy")
PLACEMENTS(nvmlGpuInstanceGetComputeInstancePossiblePlacements,
           "gpu_instance_get_compute_instance_possible_placements")
COUNT(nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
      "gpu_instance_get_compute_instance_remaining_capacity")
HANDLE(nvmlGpuInstanceCreateComputeInstance, "gpu_instance_create_compute_instance")
CREATE_AT(nvmlGpuInstanceCreateComputeInstanceWithPlacement,
          "gpu_instance_create_compute_instance_with_placement")
INSTANCES(nvmlGpuInstanceGetComputeInstances, "gpu_instance_get_compute_instances")
HANDLE(nvmlGpuInstanceGetComputeInstanceById, "gpu_instance_get_compute_instance_by_id")
DESTROY(nvmlComputeInstanceDestroy, "compute_instance_destroy")
HANDLE(nvmlDeviceGetMigDeviceHandleByIndex, "device_get_mig_device_handle_by_index")
NUMBER(nvmlDeviceGetMaxMigDeviceCount, "device_get_max_mig_device_count")
NUMBER(nvmlDeviceIsMigDeviceHandle, "device_is_mig_device_handle")
NUMBER(nvmlDeviceGetGpuInstanceId, "device_get_gpu_instance_id")
NUMBER(nvmlDeviceGetComputeInstanceId, "device_get_compute_instance_id")

EXPORT nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig,
                                                                 nvmlDevice_t *device)
{
    return ASK("device_get_device_handle_from_mig_device_handle", "d:d", mig, device);
}
EXPORT nvmlReturn_t nvmlGpuInstanceGetInfo(nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info)
{
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("gpu_instance_get_info", "d:duuuu", instance, &info->device, &info->id,
               &info->profileId, PLACE(&info->placement));
}
EXPORT nvmlReturn_t nvmlComputeInstanceGetInfo_v2(nvmlComputeInstance_t instance,
                                                  nvmlComputeInstanceInfo_t *info)
{
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("compute_instance_get_info", "d:dduuuu", instance, &info->device,
               &info->gpuInstance, &info->id, &info->profileId, PLACE(&info->placement));
}

static nvmlReturn_t compute_profile(nvmlGpuInstance_t instance, unsigned profile, unsigned engine,
                                    nvmlComputeInstanceProfileInfo_v2_t *info)
{
    return ASK("gpu_instance_get_compute_instance_profile_info", "duu:uuuuuuuuus", instance, profile,
               engine, &info->id, &info->sliceCount, &info->instanceCount,
               &info->multiprocessorCount, &info->sharedCopyEngineCount, &info->sharedDecoderCount,
               &info->sharedEncoderCount, &info->sharedJpegCount, &info->sharedOfaCount, info->name,
               (unsigned)sizeof info->name);
}
EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    nvmlGpuInstance_t instance, unsigned profile, unsigned engine,
    nvmlComputeInstanceProfileInfo_v2_t *info)
{
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (info->version != NVML_VERSION(*info, 2))
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    return compute_profile(instance, profile, engine, info);
}
EXPORT nvmlReturn_t nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvmlGpuInstance_t instance, unsigned profile, unsigned engine,
    nvmlComputeInstanceProfileInfo_t *info)
{
    nvmlComputeInstanceProfileInfo_v2_t v2;
    if (info == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t code = compute_profile(instance, profile, engine, &v2);
    if (code == NVML_SUCCESS)
        *info = (nvmlComputeInstanceProfileInfo_t){
            v2.id,
            v2.sliceCount,
            v2.instanceCount,
            v2.multiprocessorCount,
            v2.sharedCopyEngineCount,
            v2.sharedDecoderCount,
            v2.sharedEncoderCount,
            v2.sharedJpegCount,
            v2.sharedOfaCount,
        };
    return code;
}

EXPORT nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *has)
{
    if (has == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    return ASK("device_get_attributes", "d:uuuuuuuuU", device, &has->multiprocessorCount,
               &has->sharedCopyEngineCount, &has->sharedDecoderCount, &has->sharedEncoderCount,
               &has->sharedJpegCount, &has->sharedOfaCount, &has->gpuInstanceSliceCount,
               &has->computeInstanceSliceCount, &has->memorySizeMB);
}
