/* A CUDA program as far as a GPU sees one: it finds its devices, joins MPS where a daemon listens,
   takes memory, holds it, and may fault. It prints a line of JSON when it has what it gets, and one
   more should it lose its contexts. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "session.h"

enum { MAX_DEVICES = 64, RETRY_MS = 20, VARIABLES = 16384, NUMBER = 24 };

static const unsigned long long NO_LIMIT = (unsigned long long)-1;

struct options {
    unsigned long long wanted; /* bytes on each device; 0 none */
    int most;                  /* instead: all there is */
    int fault, stay;
    long hold; /* seconds; -1 for ever */
};

struct device {
    char uuid[64];
    unsigned long long free, total, limit, got; /* free and total as cudaMemGetInfo tells them */
};

struct context {
    unsigned pid, server, priority;
    char percentage[16];
    unsigned count;
    struct device devices[MAX_DEVICES];
    char refused[512]; /* JSON of the first allocation that was refused, or empty */
};

static struct session session;
static volatile sig_atomic_t status; /* what to exit with: 1 once the contexts are lost */

static int usage(int wrong)
{
    fprintf(wrong ? stderr : stdout,
            "simclient stands for a CUDA program.\n"
            "  --allocate SIZE  take so much memory of each device: 512Mi, 4Gi, bytes, or max\n"
            "  --hold SECONDS   keep it so long, or `forever`; SIGTERM and SIGINT end it\n"
            "  --fault          let a kernel fault fatally once the memory is taken\n"
            "  --stay           live on to the end of --hold though the contexts are lost\n"
            "Exit status: 0, 1 where CUDA refused or the contexts were lost, 2 for wrong options.\n");
    return wrong ? 2 : 0;
}

/* `words` are the node's own, without anything JSON would escape. */
static void fail(const char *key, long code, const char *name, const char *words)
{
    printf("{\"%s\": \"%s\", \"code\": %ld, \"words\": \"%s\"}\n", key, name, code, words);
    fflush(stdout);
}

static const char *next(struct line *line)
{
    const char *field = line_next(line);
    return field == NULL ? "" : field;
}

static int read_size(const char *text, struct options *options)
{
    char *rest;
    options->most = strcmp(text, "max") == 0;
    if (options->most)
        return 0;
    errno = 0;
    options->wanted = strtoull(text, &rest, 10);
    unsigned shift = strcmp(rest, "Gi") == 0 ? 30 : strcmp(rest, "Mi") == 0 ? 20 : 0;
    if (errno != 0 || rest == text || *text == '-' || (*rest != '\0' && shift == 0) ||
        options->wanted > UINT64_MAX >> shift)
        return -1;
    options->wanted <<= shift;
    return 0;
}

static int read_hold(const char *text, struct options *options)
{
    char *rest;
    if (strcmp(text, "forever") == 0) {
        options->hold = -1;
        return 0;
    }
    options->hold = strtol(text, &rest, 10);
    return *rest != '\0' || rest == text || options->hold < 0 || options->hold > 1000000 ? -1 : 0;
}

static int read_options(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--fault") == 0)
            options->fault = 1;
        else if (strcmp(argv[i], "--stay") == 0)
            options->stay = 1;
        else if (strcmp(argv[i], "--allocate") == 0 && read_size(value, options) == 0)
            i++;
        else if (strcmp(argv[i], "--hold") == 0 && read_hold(value, options) == 0)
            i++;
        else
            return -1;
    }
    return 0;
}

/* Refused for good, or the node is gone: say so and end. */
static void give_up(int code, struct line *reply)
{
    if (code == SESSION_ENDED)
        fail("error", 999, "CUDA_ERROR_UNKNOWN", "the driver does not answer any more");
    else {
        const char *name = next(reply), *words = next(reply);
        fail("error", code, name, words);
    }
    exit(1);
}

static void read_context(struct line *reply, struct context *context)
{
    context->pid = (unsigned)line_next_number(reply);
    context->server = (unsigned)line_next_number(reply);
    snprintf(context->percentage, sizeof context->percentage, "%s", next(reply));
    context->priority = (unsigned)line_next_number(reply);
    context->count = (unsigned)line_next_number(reply);
    if (context->count > MAX_DEVICES)
        context->count = MAX_DEVICES;
    for (unsigned i = 0; i < context->count; i++) {
        struct device *device = &context->devices[i];
        snprintf(device->uuid, sizeof device->uuid, "%s", next(reply));
        device->free = line_next_number(reply);
        device->total = line_next_number(reply);
        const char *limit = next(reply);
        device->limit = *limit == '-' ? NO_LIMIT : strtoull(limit, NULL, 10);
    }
}

/* Where no daemon listens, or only the directory of a dead one is left, CUDA goes on without MPS.
   While a server starts, or drains for the user before, it waits. */
static void open_contexts(const char *command, struct context *context)
{
    char token[64] = "", namespace[NUMBER], variables[VARIABLES];
    struct stat of = {0};
    struct line reply;
    int code, daemon = mps_connect(token, sizeof token);
    if (session_open(&session) != 0) {
        fail("error", 100, "CUDA_ERROR_NO_DEVICE", "the driver does not answer");
        exit(1);
    }
    stat("/proc/self/ns/pid", &of);
    snprintf(namespace, sizeof namespace, "%llu", (unsigned long long)of.st_ino);
    session_environment(variables, sizeof variables);
    for (;;) {
        code = session_ask(&session, &reply, "cuda_open", daemon < 0 ? "" : token, command,
                           namespace, variables, NULL);
        if (code != CUDA_ERROR_NOT_READY)
            break;
        line_free(&reply);
        poll(NULL, 0, RETRY_MS);
    }
    if (code != 0)
        give_up(code, &reply);
    read_context(&reply, context);
    line_free(&reply);
}

static int ask_for(unsigned index, const char *size, struct line *reply)
{
    char number[NUMBER];
    snprintf(number, sizeof number, "%u", index);
    return session_ask(&session, reply, "cuda_allocate", number, size, NULL);
}

/* What does not fit as a whole is refused as a whole; then whatever is left is taken. */
static void allocate(struct context *context, unsigned index, const struct options *options)
{
    struct device *device = &context->devices[index];
    struct line reply;
    char size[NUMBER] = "max";
    if (!options->most)
        snprintf(size, sizeof size, "%llu", options->wanted);
    int code = ask_for(index, size, &reply);
    if (code == CUDA_ERROR_OUT_OF_MEMORY) {
        const char *name = next(&reply), *words = next(&reply);
        if (*context->refused == '\0')
            snprintf(context->refused, sizeof context->refused,
                     "{\"error\": \"%s\", \"code\": %d, \"device\": \"%s\", \"words\": \"%s\"}", name,
                     code, device->uuid, words);
        line_free(&reply);
        code = ask_for(index, "max", &reply);
    }
    if (code != 0)
        give_up(code, &reply);
    device->got = line_next_number(&reply);
    line_free(&reply);
}

static void print_device(const struct device *device)
{
    printf("{\"uuid\": \"%s\", \"free\": %llu, \"total\": %llu, \"limit\": ", device->uuid,
           device->free, device->total);
    if (device->limit == NO_LIMIT)
        printf("null");
    else
        printf("%llu", device->limit);
    printf(", \"allocated\": %llu}", device->got);
}

static void print_context(const struct context *context)
{
    unsigned long long sum = 0;
    printf("{\"pid\": %u, \"mps\": ", context->pid);
    if (context->server == 0)
        printf("null");
    else
        printf("{\"server\": %u, \"threadPercentage\": %s, \"priority\": %u}", context->server,
               context->percentage, context->priority);
    printf(", \"devices\": [");
    for (unsigned i = 0; i < context->count; i++) {
        printf(i ? ", " : "");
        print_device(&context->devices[i]);
        sum += context->devices[i].got;
    }
    printf("], \"allocated\": %llu, \"refused\": %s}\n", sum,
           *context->refused ? context->refused : "null");
    fflush(stdout);
}

static void lost(struct line *notice)
{
    next(notice); /* "lost" */
    long code = (long)line_next_number(notice);
    const char *name = next(notice), *words = next(notice);
    status = 1;
    fail("lost", code, name, words);
    line_free(notice);
}

static long milliseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Until the time is over, or the contexts are lost. */
static void hold(const struct options *options)
{
    long until = milliseconds() + options->hold * 1000;
    struct pollfd waited = {.fd = session.fd, .events = POLLIN};
    while (status == 0 || options->stay) {
        long left = options->hold < 0 ? 1000 : until - milliseconds();
        if (left <= 0)
            return;
        if (poll(&waited, 1, (int)left) <= 0)
            continue;
        if (session_read(&session, &session.notice) != 0)
            give_up(SESSION_ENDED, NULL);
        lost(&session.notice);
    }
}

/* At any time, whatever it waits for. */
static void leave(int number)
{
    (void)number;
    _exit(status);
}

int main(int argc, char **argv)
{
    static struct context context;
    struct options options = {0};
    struct line reply = {0};
    if (argc == 2 && strcmp(argv[1], "--help") == 0)
        return usage(0);
    if (read_options(argc, argv, &options) != 0)
        return usage(1);
    signal(SIGTERM, leave);
    signal(SIGINT, leave);
    open_contexts(argv[0], &context);
    for (unsigned i = 0; (options.most || options.wanted > 0) && i < context.count; i++)
        allocate(&context, i, &options);
    print_context(&context);
    if (options.fault) {
        if (session_ask(&session, &reply, "cuda_fault", NULL) == SESSION_ENDED)
            give_up(SESSION_ENDED, NULL);
        line_free(&reply);
    }
    if (session.notice.text != NULL) /* it came before a reply */
        lost(&session.notice);
    hold(&options);
    return status;
}
