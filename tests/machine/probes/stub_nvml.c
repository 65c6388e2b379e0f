/* A stand-in for NVIDIA's management library, for machines without a card: the real binding loads it and calls it.
 *
 * The environment variable STUB_NVML says what kind of machine it plays: "h100" (the default), "gb10", "jetson",
 * "mismatch" or "lost". Built with OLD_DRIVER it lacks the functions that came after driver 450. One card, whose
 * handle is the number 1. Layouts are those of the interface that the binding describes; only what the probe asks for
 * is here, and the functions that list processes end the program, for nothing may ask for those.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, GPU_IS_LOST = 15, VERSION_MISMATCH = 18 };
enum { UNSIGNED_INT = 1, UNSIGNED_LONG_LONG = 3 };

typedef unsigned long long u64;
typedef struct { u64 total, free, used; } memory_v1;
typedef struct { unsigned version; u64 total, reserved, free, used; } memory_v2;
typedef struct { unsigned gpu, memory; } utilization;
typedef struct { unsigned version, sensor; int temperature; } temperature_v1;
typedef struct { unsigned version, value; } addressing_mode;
typedef struct { unsigned version, is_supported; } gpm_support;
typedef union { double d; unsigned u; u64 ull; } value;
typedef struct { unsigned id, scope; long long timestamp, latency; unsigned type; int status; value value; } field_value;
typedef struct { u64 moment, dram, tensor; } sample;
typedef struct { unsigned id; int status; double value; const char *names[3]; } metric;
typedef struct { unsigned version, count; sample *first, *second; metric metrics[]; } metrics_request;

static u64 moment;         /* Goes on by one with each call for field values or a sample. */
static int samples_alive;  /* Allocated and not yet freed. */

static int plays(const char *machine) {
    const char *chosen = getenv("STUB_NVML");
    return strcmp(chosen != NULL ? chosen : "h100", machine) == 0;
}

/* What every call about the card begins with. */
static int card(void) { return plays("lost") ? GPU_IS_LOST : SUCCESS; }

static int put(unsigned *out, unsigned answer) {
    *out = plays("jetson") ? 0 : answer;
    return card();
}

static int write_text(char *buffer, unsigned length, const char *text) {
    snprintf(buffer, length, "%s", text);
    return SUCCESS;
}

int nvmlInitWithFlags(unsigned flags) { (void)flags; return plays("mismatch") ? VERSION_MISMATCH : SUCCESS; }

int nvmlShutdown(void) {
    if (samples_alive != 0) fprintf(stderr, "%d samples were not freed\n", samples_alive);
    return SUCCESS;
}

int nvmlSystemGetDriverVersion(char *buffer, unsigned length) { return write_text(buffer, length, "590.44.01"); }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 1; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, size_t *handle) { *handle = index + 1; return SUCCESS; }
int nvmlDeviceGetUUID(size_t handle, char *buffer, unsigned length) {
    (void)handle;
    return write_text(buffer, length, "GPU-00000000-canary-uuid");
}

int nvmlDeviceGetName(size_t handle, char *buffer, unsigned length) {
    (void)handle;
    const char *name = plays("gb10") ? "NVIDIA GB10" : plays("jetson") ? "Orin (nvgpu)" : "NVIDIA H100 80GB HBM3";
    return write_text(buffer, length, name);
}

int nvmlDeviceGetMemoryInfo(size_t handle, memory_v1 *out) {
    (void)handle;
    if (plays("gb10")) return NOT_SUPPORTED;
    memset(out, 0, sizeof *out);
    if (!plays("jetson")) *out = (memory_v1){85520809984ULL, 74246520832ULL, 11274289152ULL};
    return card();
}

int nvmlDeviceGetUtilizationRates(size_t handle, utilization *out) {
    (void)handle;
    *out = plays("jetson") ? (utilization){0, 0} : (utilization){97, 41};
    return card();
}

int nvmlDeviceGetClockInfo(size_t handle, unsigned kind, unsigned *out) {
    (void)handle;
    if (plays("gb10") && kind == 2) return NOT_SUPPORTED;
    return put(out, kind == 2 ? 2619 : 1755);
}

int nvmlDeviceGetMaxClockInfo(size_t handle, unsigned kind, unsigned *out) {
    (void)handle;
    if (plays("gb10") && kind == 2) return NOT_SUPPORTED;
    return put(out, kind == 2 ? 2619 : 1980);
}

int nvmlDeviceGetMemoryBusWidth(size_t handle, unsigned *out) { (void)handle; return put(out, plays("gb10") ? 0 : 5120); }
int nvmlDeviceGetPowerUsage(size_t handle, unsigned *out) { (void)handle; return put(out, 412345); }
int nvmlDeviceGetEnforcedPowerLimit(size_t handle, unsigned *out) { (void)handle; return put(out, 700000); }
int nvmlDeviceGetCurrPcieLinkGeneration(size_t handle, unsigned *out) { (void)handle; return put(out, 5); }
int nvmlDeviceGetCurrPcieLinkWidth(size_t handle, unsigned *out) { (void)handle; return put(out, 16); }

int nvmlDeviceGetTemperature(size_t handle, unsigned sensor, unsigned *out) {
    (void)handle, (void)sensor;
    return put(out, 56);
}

int nvmlDeviceGetPcieThroughput(size_t handle, unsigned direction, unsigned *out) {
    (void)handle;
    return put(out, direction == 0 ? 1200000 : 3400000);
}

int nvmlDeviceGetCudaComputeCapability(size_t handle, int *major, int *minor) {
    (void)handle;
    *major = plays("jetson") ? 0 : plays("gb10") ? 12 : 9;
    *minor = plays("gb10") ? 1 : 0;
    return card();
}

int nvmlDeviceGetCurrentClocksThrottleReasons(size_t handle, u64 *out) {
    (void)handle;
    *out = plays("jetson") ? 0 : 0x4 | 0x20;
    return card();
}

/* NVLink sends 3,000,000 KiB and receives 1,000,000 KiB from one moment to the next. */
int nvmlDeviceGetFieldValues(size_t handle, int count, field_value *values) {
    (void)handle;
    moment++;
    for (int i = 0; i < count; i++) {
        field_value *each = &values[i];
        each->status = SUCCESS;
        each->type = UNSIGNED_LONG_LONG;
        if (plays("jetson")) each->value.ull = 0;
        else if (each->id == 82) each->type = UNSIGNED_INT, each->value.u = 71;
        else if (each->id == 138 && each->scope == 0xFFFFFFFF) each->value.ull = 3000000 * moment;
        else if (each->id == 139 && each->scope == 0xFFFFFFFF) each->value.ull = 1000000 * moment;
        else each->status = INVALID_ARGUMENT;
    }
    return card();
}

#ifndef OLD_DRIVER
int nvmlDeviceGetMemoryInfo_v2(size_t handle, memory_v2 *out) {
    (void)handle;
    if (plays("gb10")) return NOT_SUPPORTED;
    u64 total = plays("jetson") ? 0 : 85520809984ULL, used = total / 8, reserved = total / 128;
    *out = (memory_v2){out->version, total, reserved, total - used - reserved, used};
    return card();
}

int nvmlDeviceGetTemperatureV(size_t handle, temperature_v1 *out) {
    (void)handle;
    out->temperature = plays("jetson") ? 0 : 56;
    return card();
}

int nvmlDeviceGetCurrentClocksEventReasons(size_t handle, u64 *out) {
    return nvmlDeviceGetCurrentClocksThrottleReasons(handle, out);
}

int nvmlDeviceGetMigMode(size_t handle, unsigned *current, unsigned *pending) {
    (void)handle;
    *current = *pending = 0;
    return card();
}

int nvmlDeviceGetAddressingMode(size_t handle, addressing_mode *out) {
    (void)handle;
    return put(&out->value, 2);
}

int nvmlGpmQueryDeviceSupport(size_t handle, gpm_support *out) {
    (void)handle;
    return put(&out->is_supported, !plays("gb10"));
}

int nvmlGpmSampleAlloc(sample **out) {
    samples_alive++;
    *out = calloc(1, sizeof **out);
    return SUCCESS;
}

int nvmlGpmSampleFree(sample *freed) {
    samples_alive--;
    free(freed);
    return SUCCESS;
}

/* From one moment to the next 62 in 100 of the memory's bandwidth and 31 in 100 of the tensor pipes' time are used. */
int nvmlGpmSampleGet(size_t handle, sample *out) {
    (void)handle;
    moment++;
    *out = (sample){moment, 62 * moment, 31 * moment};
    return card();
}

int nvmlGpmMetricsGet(metrics_request *request) {
    const sample *first = request->first, *second = request->second;
    if (request->version != 1 || first == NULL || second == NULL || second->moment <= first->moment)
        return INVALID_ARGUMENT;
    double moments = (double)(second->moment - first->moment);
    for (unsigned i = 0; i < request->count; i++) {
        metric *each = &request->metrics[i];
        each->status = SUCCESS;
        if (each->id == 10) each->value = (double)(second->dram - first->dram) / moments;
        else if (each->id == 5) each->value = (double)(second->tensor - first->tensor) / moments;
        else each->status = NOT_SUPPORTED;
    }
    return SUCCESS;
}
#endif

int nvmlDeviceGetComputeRunningProcesses_v3(void) { abort(); }
int nvmlDeviceGetGraphicsRunningProcesses_v3(void) { abort(); }
int nvmlDeviceGetProcessUtilization(void) { abort(); }
