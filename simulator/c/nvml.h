/* The part of NVML's interface that is simulated: types and layouts as in NVIDIA's nvml.h. */
#ifndef SIMULATOR_NVML_H
#define SIMULATOR_NVML_H

#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

typedef int nvmlReturn_t;
typedef struct nvmlDevice_st *nvmlDevice_t;
typedef nvmlDevice_t nvmlGpuInstance_t, nvmlComputeInstance_t; /* handles are of one kind here */

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NO_PERMISSION = 4,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_DRIVER_NOT_LOADED = 9,
    NVML_ERROR_FUNCTION_NOT_FOUND = 13,
    NVML_ERROR_TIMEOUT = 10,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_RESET_REQUIRED = 16,
    NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
    NVML_ERROR_IN_USE = 19,
    NVML_ERROR_MEMORY = 20,
    NVML_ERROR_INSUFFICIENT_RESOURCES = 23,
    NVML_ERROR_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_ERROR_UNKNOWN = 999,
};

enum { NVML_INIT_FLAG_NO_GPUS = 1 };

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
} nvmlProcessInfo_v1_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    unsigned valueType;
    nvmlReturn_t nvmlReturn;
    union {
        double dVal;
        unsigned uiVal;
        unsigned long ulVal;
        unsigned long long ullVal;
        long long sllVal;
        int siVal;
        unsigned short usVal;
    } value;
} nvmlFieldValue_t;

typedef struct {
    unsigned pid;
    unsigned long long timeStamp;
    unsigned smUtil, memUtil, encUtil, decUtil;
} nvmlProcessUtilizationSample_t;

typedef struct {
    unsigned start, size;
} nvmlPlacement_t; /* nvmlGpuInstancePlacement_t and nvmlComputeInstancePlacement_t */

typedef struct {
    unsigned id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount;
    unsigned decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
} nvmlGpuInstanceProfileInfo_t;

typedef struct {
    unsigned version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount;
    unsigned copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
} nvmlGpuInstanceProfileInfo_v2_t;

typedef struct {
    unsigned version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount;
    unsigned decoderCount, encoderCount, jpegCount, ofaCount;
    unsigned long long memorySizeMB;
    char name[96];
    unsigned capabilities;
} nvmlGpuInstanceProfileInfo_v3_t;

typedef struct {
    nvmlDevice_t device;
    unsigned id, profileId;
    nvmlPlacement_t placement;
} nvmlGpuInstanceInfo_t;

typedef struct {
    unsigned id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount;
    unsigned sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
} nvmlComputeInstanceProfileInfo_t;

typedef struct {
    unsigned version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount;
    unsigned sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount;
    char name[96];
} nvmlComputeInstanceProfileInfo_v2_t;

typedef struct {
    nvmlDevice_t device;
    nvmlGpuInstance_t gpuInstance;
    unsigned id, profileId;
    nvmlPlacement_t placement;
} nvmlComputeInstanceInfo_t;

typedef struct {
    unsigned multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount;
    unsigned sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount;
    unsigned long long memorySizeMB;
} nvmlDeviceAttributes_t;

typedef nvmlDevice_t nvmlEventSet_t;

typedef struct {
    unsigned max, high, partial, low, none;
} nvmlRowRemapperHistogramValues_t;

typedef struct {
    nvmlDevice_t device;
    unsigned long long eventType, eventData;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlEventData_t;

typedef struct {
    unsigned long long total, free, used;
} nvmlBAR1Memory_t;

typedef struct {
    unsigned version, value;
} nvmlDeviceAddressingMode_t;

typedef struct {
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId;
    unsigned char state;
} nvmlGpuFabricInfo_t;

typedef struct {
    unsigned version;
    unsigned char clusterUuid[16];
    nvmlReturn_t status;
    unsigned cliqueId;
    unsigned char state;
    unsigned healthMask;
    unsigned char healthSummary; /* from version 3 on */
} nvmlGpuFabricInfo_v3_t;

typedef struct {
    unsigned version, sensorType;
    int temperature;
} nvmlTemperature_t;

typedef struct {
    nvmlPciInfo_t pciInfo;
    char uuid[80];
} nvmlExcludedDeviceInfo_t;

typedef struct {
    unsigned version;
    unsigned long long aggregateUncParity, aggregateUncSecDed, aggregateCor;
    unsigned long long volatileUncParity, volatileUncSecDed, volatileCor;
    unsigned long long aggregateUncBucketL2, aggregateUncBucketSm, aggregateUncBucketPcie;
    unsigned long long aggregateUncBucketMcu, aggregateUncBucketOther;
    unsigned bThresholdExceeded;
} nvmlEccSramErrorStatus_t;

typedef struct {
    unsigned version, bChannelRepairPending, bTpcRepairPending;
} nvmlRepairStatus_t;

/* As nvml.h has it; pynvml 13.615.71 reads a version in front of it. */
typedef struct {
    unsigned bUnrepairableMemory;
} nvmlUnrepairableMemoryStatus_v1_t;

typedef struct {
    unsigned version;
    unsigned char ibGuid[16], chassisSerialNumber[16];
    unsigned char slotNumber, trayIndex, hostId, peerType, moduleId;
} nvmlPlatformInfo_t; /* version 1 has other names for the same places */

/* A structure's version names its size, as NVML_STRUCT_VERSION does. */
#define NVML_VERSION(type, number) ((unsigned)(sizeof(type) | ((unsigned)(number) << 24)))

_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_t) == 48, "10 * 4 + 8");
_Static_assert(sizeof(nvmlGpuInstanceProfileInfo_v2_t) == 0x98, "as its version says");
_Static_assert(sizeof(nvmlComputeInstanceProfileInfo_v2_t) == 0x88, "as its version says");
_Static_assert(sizeof(nvmlDeviceAttributes_t) == 40, "8 * 4 + 8");
_Static_assert(sizeof(nvmlGpuFabricInfo_v3_t) == 0x28, "as its version says");
_Static_assert(sizeof(nvmlMemory_v2_t) == 0x28, "NVML says so in the version of this structure");
_Static_assert(sizeof(nvmlEccSramErrorStatus_t) == 0x68, "as its version says");
_Static_assert(sizeof(nvmlPlatformInfo_t) == 0x2c, "as its version says");
_Static_assert(sizeof(nvmlRepairStatus_t) == 0xc, "as its version says");
_Static_assert(sizeof(nvmlExcludedDeviceInfo_t) == 148, "68 + 80");
_Static_assert(sizeof(nvmlPciInfo_t) == 68, "v3: 16 + 5 * 4 + 32");
_Static_assert(sizeof(nvmlProcessInfo_t) == 24, "v2 and v3");
_Static_assert(sizeof(nvmlFieldValue_t) == 40, "a union of 8 bytes, aligned");

/* Those that older versions of the same function end in (versions.c). */
nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count);
nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device);
nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device);
nvmlReturn_t nvmlGetExcludedDeviceCount(unsigned *count);
nvmlReturn_t nvmlGetExcludedDeviceInfoByIndex(unsigned index, nvmlExcludedDeviceInfo_t *info);
nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned link,
                                                 nvmlPciInfo_t *pci);
nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                        nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                      nvmlProcessInfo_t *infos);
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout);

nvmlReturn_t nvmlShutdown(void);
const char *nvmlErrorString(nvmlReturn_t code);

#endif
