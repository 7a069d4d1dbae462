/* nvidia-smi: -L, -q and --query-gpu, written as the real one writes them. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "nvml.h"

enum { MIB = 1 << 20, TEXT = 96, MAX_COLUMNS = 32 };

/* What the listings say of one GPU. */
struct gpu {
    unsigned index, minor, architecture, persistence, compute_mode, mig, mig_pending;
    unsigned milliwatts, celsius, has_mig;
    char name[TEXT], uuid[TEXT], serial[TEXT];
    nvmlMemory_v2_t memory;
    nvmlPciInfo_t pci;
};

static nvmlReturn_t read_gpu(unsigned index, struct gpu *gpu)
{
    nvmlDevice_t device;
    *gpu = (struct gpu){.index = index, .memory.version = 0x02000000 | sizeof(nvmlMemory_v2_t)};
    nvmlReturn_t code = nvmlDeviceGetHandleByIndex_v2(index, &device);
    if (code != NVML_SUCCESS)
        return code;
    nvmlReturn_t codes[] = {
        nvmlDeviceGetName(device, gpu->name, TEXT),
        nvmlDeviceGetUUID(device, gpu->uuid, TEXT),
        nvmlDeviceGetSerial(device, gpu->serial, TEXT),
        nvmlDeviceGetMinorNumber(device, &gpu->minor),
        nvmlDeviceGetArchitecture(device, &gpu->architecture),
        nvmlDeviceGetPersistenceMode(device, &gpu->persistence),
        nvmlDeviceGetComputeMode(device, &gpu->compute_mode),
        nvmlDeviceGetMemoryInfo_v2(device, &gpu->memory),
        nvmlDeviceGetPciInfo_v3(device, &gpu->pci),
        nvmlDeviceGetPowerUsage(device, &gpu->milliwatts),
        nvmlDeviceGetTemperature(device, 0, &gpu->celsius),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] != NVML_SUCCESS)
            return codes[i];
    gpu->has_mig = nvmlDeviceGetMigMode(device, &gpu->mig, &gpu->mig_pending) == NVML_SUCCESS;
    return NVML_SUCCESS;
}

static int unreadable(unsigned index, nvmlReturn_t code)
{
    printf("Unable to determine the device handle for GPU%u: %s\n", index, nvmlErrorString(code));
    return code;
}

static const char *architecture(unsigned number)
{
    static const char *const names[] = {[6] = "Turing", [7] = "Ampere", [8] = "Ada Lovelace",
                                        [9] = "Hopper", [10] = "Blackwell"};
    return number < sizeof names / sizeof *names && names[number] ? names[number] : "Unknown";
}

static const char *compute_mode(unsigned mode)
{
    return mode == 0 ? "Default" : mode == 2 ? "Prohibited" : "Exclusive_Process";
}

static const char *enabled(unsigned yes) { return yes ? "Enabled" : "Disabled"; }

static void row(int depth, const char *name, const char *value)
{
    printf("%*s%-*s: %s\n", 4 * depth, "", 42 - 4 * depth, name, value);
}

static void row_number(int depth, const char *name, unsigned long long value, const char *unit)
{
    char text[TEXT];
    snprintf(text, sizeof text, "%llu%s", value, unit);
    row(depth, name, text);
}

/* The MIG devices of a GPU, each by what its name says after the product's. */
static void list_mig(unsigned gpu)
{
    nvmlDevice_t device, mig;
    unsigned most = 0;
    if (nvmlDeviceGetHandleByIndex_v2(gpu, &device) != NVML_SUCCESS ||
        nvmlDeviceGetMaxMigDeviceCount(device, &most) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < most; i++) {
        char name[TEXT] = "", uuid[TEXT] = "";
        if (nvmlDeviceGetMigDeviceHandleByIndex(device, i, &mig) != NVML_SUCCESS)
            continue;
        nvmlDeviceGetName(mig, name, TEXT);
        nvmlDeviceGetUUID(mig, uuid, TEXT);
        const char *profile = strstr(name, " MIG ");
        printf("  MIG %-11s Device %2u: (UUID: %s)\n", profile ? profile + 5 : name, i, uuid);
    }
}

static int list(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct gpu gpu;
        nvmlReturn_t code = read_gpu(i, &gpu);
        if (code != NVML_SUCCESS)
            return unreadable(i, code);
        printf("GPU %u: %s (UUID: %s)\n", i, gpu.name, gpu.uuid);
        list_mig(i);
    }
    return 0;
}

static void describe(const struct gpu *gpu)
{
    char watts[TEXT];
    printf("GPU %s\n", gpu->pci.busId);
    row(1, "Product Name", gpu->name);
    row(1, "Product Architecture", architecture(gpu->architecture));
    row(1, "Persistence Mode", enabled(gpu->persistence));
    printf("    MIG Mode\n");
    row(2, "Current", gpu->has_mig ? enabled(gpu->mig) : "N/A");
    row(2, "Pending", gpu->has_mig ? enabled(gpu->mig_pending) : "N/A");
    row(1, "Serial Number", gpu->serial);
    row(1, "GPU UUID", gpu->uuid);
    row_number(1, "Minor Number", gpu->minor, "");
    printf("    PCI\n");
    row(2, "Bus Id", gpu->pci.busId);
    printf("    FB Memory Usage\n");
    row_number(2, "Total", gpu->memory.total / MIB, " MiB");
    row_number(2, "Reserved", gpu->memory.reserved / MIB, " MiB");
    row_number(2, "Used", gpu->memory.used / MIB, " MiB");
    row_number(2, "Free", gpu->memory.free / MIB, " MiB");
    row(1, "Compute Mode", compute_mode(gpu->compute_mode));
    printf("    Temperature\n");
    row_number(2, "GPU Current Temp", gpu->celsius, " C");
    printf("    GPU Power Readings\n");
    snprintf(watts, sizeof watts, "%u.%02u W", gpu->milliwatts / 1000, gpu->milliwatts % 1000 / 10);
    row(2, "Instantaneous Power Draw", watts);
    printf("\n");
}

static int query(unsigned count)
{
    char version[TEXT] = "", text[TEXT];
    int cuda = 0;
    time_t now = time(NULL);
    nvmlSystemGetDriverVersion(version, sizeof version);
    nvmlSystemGetCudaDriverVersion_v2(&cuda);
    strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", localtime(&now));
    printf("\n==============NVSMI LOG==============\n\n");
    row(0, "Timestamp", text);
    row(0, "Driver Version", version);
    snprintf(text, sizeof text, "%d.%d", cuda / 1000, cuda % 1000 / 10);
    row(0, "CUDA Version", text);
    printf("\n");
    row_number(0, "Attached GPUs", count, "");
    for (unsigned i = 0; i < count; i++) {
        struct gpu gpu;
        nvmlReturn_t code = read_gpu(i, &gpu);
        if (code != NVML_SUCCESS)
            return unreadable(i, code);
        describe(&gpu);
    }
    return 0;
}

/* One cell of --query-gpu, or -1 for a field that is not known. */
static int cell(const struct gpu *gpu, const char *field, char *text, const char *mib)
{
    if (strcmp(field, "index") == 0)
        snprintf(text, TEXT, "%u", gpu->index);
    else if (strcmp(field, "name") == 0)
        snprintf(text, TEXT, "%s", gpu->name);
    else if (strcmp(field, "uuid") == 0)
        snprintf(text, TEXT, "%s", gpu->uuid);
    else if (strcmp(field, "serial") == 0)
        snprintf(text, TEXT, "%s", gpu->serial);
    else if (strcmp(field, "pci.bus_id") == 0)
        snprintf(text, TEXT, "%s", gpu->pci.busId);
    else if (strcmp(field, "compute_mode") == 0)
        snprintf(text, TEXT, "%s", compute_mode(gpu->compute_mode));
    else if (strcmp(field, "memory.total") == 0)
        snprintf(text, TEXT, "%llu%s", gpu->memory.total / MIB, mib);
    else if (strcmp(field, "memory.used") == 0)
        snprintf(text, TEXT, "%llu%s", gpu->memory.used / MIB, mib);
    else if (strcmp(field, "memory.free") == 0)
        snprintf(text, TEXT, "%llu%s", gpu->memory.free / MIB, mib);
    else
        return -1;
    return 0;
}

static int split_fields(char *list_of_fields, char *fields[MAX_COLUMNS])
{
    int columns = 0;
    char *rest = NULL;
    for (char *field = strtok_r(list_of_fields, ", ", &rest); field != NULL && columns < MAX_COLUMNS;
         field = strtok_r(NULL, ", ", &rest))
        fields[columns++] = field;
    return columns;
}

static int table(unsigned count, char *list_of_fields, const char *format)
{
    char *fields[MAX_COLUMNS], text[TEXT];
    int columns = split_fields(list_of_fields, fields);
    int units = strstr(format, "nounits") == NULL, header = strstr(format, "noheader") == NULL;
    const struct gpu none = {0};
    for (int c = 0; c < columns; c++)
        if (cell(&none, fields[c], text, "") != 0) {
            printf("Field \"%s\" is not a valid field to query.\n\n", fields[c]);
            return 2;
        }
    for (int c = 0; header && c < columns; c++) {
        const char *unit = units && strncmp(fields[c], "memory.", 7) == 0 ? " [MiB]" : "";
        printf("%s%s%s%s", c ? ", " : "", fields[c], unit, c + 1 == columns ? "\n" : "");
    }
    for (unsigned i = 0; i < count; i++) {
        struct gpu gpu;
        nvmlReturn_t code = read_gpu(i, &gpu);
        if (code != NVML_SUCCESS)
            return unreadable(i, code);
        for (int c = 0; c < columns; c++) {
            cell(&gpu, fields[c], text, units ? " MiB" : "");
            printf("%s%s%s", c ? ", " : "", text, c + 1 == columns ? "\n" : "");
        }
    }
    return 0;
}

static int cannot_start(nvmlReturn_t code)
{
    if (code == NVML_ERROR_DRIVER_NOT_LOADED)
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
               "Make sure that the latest NVIDIA driver is installed and running.\n\n");
    else
        printf("Failed to initialize NVML: %s\n", nvmlErrorString(code));
    return code > 255 ? 255 : code;
}

static int usage(void)
{
    fprintf(stderr, "This nvidia-smi is simulated. It knows:\n"
                    "  nvidia-smi -L\n"
                    "  nvidia-smi -q\n"
                    "  nvidia-smi --query-gpu=FIELD,... --format=csv[,noheader][,nounits]\n");
    return 2;
}

static int show(int argc, char **argv, unsigned count)
{
    static const char fields[] = "--query-gpu=", format[] = "--format=csv";
    if (argc == 2 && (strcmp(argv[1], "-L") == 0 || strcmp(argv[1], "--list-gpus") == 0))
        return list(count);
    if (argc == 2 && (strcmp(argv[1], "-q") == 0 || strcmp(argv[1], "--query") == 0))
        return query(count);
    if (argc == 3 && strncmp(argv[1], fields, sizeof fields - 1) == 0 &&
        strncmp(argv[2], format, sizeof format - 1) == 0)
        return table(count, argv[1] + sizeof fields - 1, argv[2] + sizeof format - 1);
    return usage();
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    nvmlReturn_t code = nvmlInitWithFlags(NVML_INIT_FLAG_NO_GPUS);
    if (code == NVML_SUCCESS)
        code = nvmlDeviceGetCount_v2(&count);
    if (code != NVML_SUCCESS)
        return cannot_start(code);
    if (count == 0) {
        printf("No devices were found\n");
        return NVML_ERROR_NOT_FOUND;
    }
    int status = show(argc, argv, count);
    nvmlShutdown();
    return status;
}
