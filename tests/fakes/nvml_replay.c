/* Stand-in libnvidia-ml.so.1: replays a table of calls. It knows nothing of NVML and uses no NVIDIA header.
 *
 * Every NVML entry point takes at most six integer or pointer arguments, so one stub shape fits all of them on
 * x86-64 (SysV) and AArch64. The exported names come from nvml_symbols.inc, one X(name) for every name of a driver
 * generation, so that a function which an old driver lacks is really missing.
 *
 * Table ($FAKE_NVML_TABLE), one call a line, fields separated by one space:
 *     call SYMBOL SIG KEY RET OUT...
 * SIG, one letter an argument:
 *     i uint in   h device handle in   s C string in   o<N> N-byte out buffer   n length of the buffer before it
 *     x<N> N-byte in/out struct whose first uint32, its version, is in KEY       O device handle out
 * KEY: the inputs joined by ',', or '-'. OUT: hex for o and x, a handle's name for O, '-' for untouched.
 *
 * Faults ($FAKE_NVML_FAULT), separated by commas:
 *     ret:SYMBOL=CODE    lost@N (GPU_IS_LOST from the Nth device call on)    hang:SYMBOL=SECONDS
 *     crash:SYMBOL       noterm (SIGTERM is ignored)                         flood:SYMBOL (prints to stdout)
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    SUCCESS = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7,
    DRIVER_NOT_LOADED = 9, GPU_IS_LOST = 15
};
enum { ARGUMENTS = 6, HANDLES = 64, KEY_SIZE = 512 };

typedef uintptr_t Argument;

struct record {
    char *symbol, *signature, *key, *out;
    int result;
};

struct handle {
    char name[24];
};

static struct record *records;
static int record_count;
static struct handle handles[HANDLES];
static int handle_count;
static char *faults;
static int loaded, init_count, device_calls, lost_at;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct handle *handle_of(const char *name)
{
    for (int i = 0; i < handle_count; i++)
        if (strcmp(handles[i].name, name) == 0)
            return &handles[i];
    if (handle_count == HANDLES)
        abort();
    snprintf(handles[handle_count].name, sizeof handles[0].name, "%s", name);
    return &handles[handle_count++];
}

static int is_handle(Argument value)
{
    Argument first = (Argument)handles;
    return value >= first && value < first + handle_count * sizeof handles[0] && (value - first) % sizeof handles[0] == 0;
}

static void load(void)
{
    if (loaded)
        return;
    loaded = 1;
    const char *fault = getenv("FAKE_NVML_FAULT");
    faults = strdup(fault ? fault : "");
    const char *lost = strstr(faults, "lost@");
    lost_at = lost ? atoi(lost + strlen("lost@")) : 0;
    if (strstr(faults, "noterm"))
        signal(SIGTERM, SIG_IGN);

    const char *path = getenv("FAKE_NVML_TABLE");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return;
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) > 0) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "call ", 5) != 0)
            continue;
        records = realloc(records, (record_count + 1) * sizeof *records);
        struct record *record = &records[record_count++];
        char *rest = strdup(line + 5);
        record->symbol = strsep(&rest, " ");
        record->signature = strsep(&rest, " ");
        record->key = strsep(&rest, " ");
        record->result = atoi(strsep(&rest, " "));
        record->out = rest;
    }
    free(line);
    fclose(file);
}

/* The text after '=' of the fault KIND:SYMBOL, "" when it has none, NULL when there is no such fault. */
static const char *fault(const char *kind, const char *symbol)
{
    char wanted[160];
    int length = snprintf(wanted, sizeof wanted, "%s:%s", kind, symbol);
    for (const char *at = faults; (at = strstr(at, wanted)); at += length) {
        char end = at[length];
        if ((at == faults || at[-1] == ',') && (end == '=' || end == ',' || end == 0))
            return end == '=' ? at + length + 1 : "";
    }
    return NULL;
}

/* Write the key of a call into `key`; return 0 when an argument that must be a handle is none. */
static int key_of(const struct record *record, const Argument *arguments, char *key, int *is_device_call)
{
    int used = 0, index = 0;
    key[0] = 0;
    for (char *at = record->signature; *at && *at != '-'; index++) {
        char kind = *at++;
        strtol(at, &at, 10);
        const char *separator = used ? "," : "";
        size_t left = KEY_SIZE - used;
        if (kind == 'i') {
            used += snprintf(key + used, left, "%s%u", separator, (unsigned)arguments[index]);
        } else if (kind == 's') {
            used += snprintf(key + used, left, "%s%s", separator, (char *)arguments[index]);
        } else if (kind == 'x') {
            used += snprintf(key + used, left, "%sv%u", separator, *(unsigned *)arguments[index]);
        } else if (kind == 'h') {
            if (!is_handle(arguments[index]))
                return 0;
            *is_device_call = 1;
            used += snprintf(key + used, left, "%s%s", separator, ((struct handle *)arguments[index])->name);
        }
    }
    if (!used)
        strcpy(key, "-");
    return 1;
}

static int nibble(int digit)
{
    return digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10;
}

static int write_outputs(const struct record *record, const Argument *arguments)
{
    char *copy = record->out ? strdup(record->out) : NULL;
    char *rest = copy;
    int result = SUCCESS, index = 0;
    for (char *at = record->signature; *at && *at != '-' && result == SUCCESS; index++) {
        char kind = *at++;
        long size = strtol(at, &at, 10);
        if (kind != 'o' && kind != 'x' && kind != 'O')
            continue;
        const char *out = rest ? strsep(&rest, " ") : NULL;
        if (!out || strcmp(out, "-") == 0)
            continue;
        if (kind == 'O') {
            *(struct handle **)arguments[index] = handle_of(out);
        } else if (*at == 'n' && strlen(out) / 2 > (unsigned)arguments[index + 1]) {
            result = INSUFFICIENT_SIZE;
        } else {
            unsigned char *bytes = (unsigned char *)arguments[index];
            for (long i = 0; i < size && out[2 * i]; i++)
                bytes[i] = (unsigned char)(nibble(out[2 * i]) << 4 | nibble(out[2 * i + 1]));
        }
    }
    free(copy);
    return result;
}

static int replay(const char *symbol, const Argument *arguments)
{
    char key[KEY_SIZE];
    for (int i = 0; i < record_count; i++) {
        struct record *record = &records[i];
        int is_device_call = 0;
        if (strcmp(record->symbol, symbol) != 0)
            continue;
        if (!key_of(record, arguments, key, &is_device_call))
            return INVALID_ARGUMENT;
        if (strcmp(record->key, key) != 0)
            continue;
        if (is_device_call && lost_at && ++device_calls >= lost_at)
            return GPU_IS_LOST;
        return record->result ? record->result : write_outputs(record, arguments);
    }
    /* a known entry point with arguments that were not recorded */
    if (strstr(symbol, "ByIndex"))
        return strstr(symbol, "Mig") ? NOT_FOUND : INVALID_ARGUMENT;
    return NOT_SUPPORTED;
}

static void pause_for(double seconds)
{
    struct timespec left = {(time_t)seconds, (long)((seconds - (time_t)seconds) * 1e9)};
    while (nanosleep(&left, &left))
        ;
}

static int answer(const char *symbol, const Argument *arguments)
{
    const char *code = fault("ret", symbol);
    if (code)
        return atoi(code);
    if (strcmp(symbol, "nvmlInitWithFlags") == 0 && record_count == 0)
        return DRIVER_NOT_LOADED;
    if (strcmp(symbol, "nvmlShutdown") == 0)
        return SUCCESS;
    if (init_count == 0 && strncmp(symbol, "nvmlInit", 8) != 0 && strcmp(symbol, "nvmlSystemGetNVMLVersion") != 0)
        return UNINITIALIZED;
    return replay(symbol, arguments);
}

static int call(const char *symbol, Argument a, Argument b, Argument c, Argument d, Argument e, Argument f)
{
    const Argument arguments[ARGUMENTS] = {a, b, c, d, e, f};
    pthread_mutex_lock(&lock);
    load();
    const char *seconds = fault("hang", symbol);
    if (seconds)
        pause_for(atof(seconds));
    if (fault("crash", symbol))
        abort();
    if (fault("flood", symbol)) {
        printf("a line of the library's own on standard output\n");
        fflush(stdout);
    }
    int result = answer(symbol, arguments);
    if (result == SUCCESS && strncmp(symbol, "nvmlInit", 8) == 0)
        init_count++;
    if (result == SUCCESS && strcmp(symbol, "nvmlShutdown") == 0 && init_count)
        init_count--;
    pthread_mutex_unlock(&lock);
    return result;
}

#define X(name) \
    EXPORT int name(Argument a, Argument b, Argument c, Argument d, Argument e, Argument f) \
    { \
        return call(#name, a, b, c, d, e, f); \
    }
#include "nvml_symbols.inc"

EXPORT const char *nvmlErrorString(int result)
{
    switch (result) {
    case SUCCESS: return "Success";
    case UNINITIALIZED: return "Uninitialized";
    case INVALID_ARGUMENT: return "Invalid Argument";
    case NOT_SUPPORTED: return "Not Supported";
    case 4: return "Insufficient Permissions";
    case NOT_FOUND: return "Not Found";
    case DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case 12: return "NVML Shared Library Not Found";
    case 13: return "Function Not Found";
    case 14: return "Corrupted infoROM";
    case GPU_IS_LOST: return "GPU is lost";
    case 16: return "GPU requires reset";
    case 17: return "GPU access blocked by the operating system";
    case 18: return "Driver/library version mismatch";
    case 25: return "Argument version mismatch";
    default: return "Unknown Error";
    }
}
