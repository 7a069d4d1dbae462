/* Calls over a connection of one's own, and the way to an MPS daemon. */
#include "session.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *view;

int session_open(struct session *session)
{
    const char *path;
    *session = (struct session){.fd = -1};
    if (client_look(&view, &path) != NVML_SUCCESS)
        return -1;
    session->fd = connection_open(path);
    return session->fd < 0 ? -1 : 0;
}

static int send_call(struct session *session, const char *call, va_list arguments)
{
    struct line request = {0};
    line_put(&request, "1");
    line_put(&request, view);
    line_put(&request, call);
    for (const char *next; (next = va_arg(arguments, const char *)) != NULL;)
        line_put(&request, next);
    int done = connection_send(session->fd, request.text, request.length) == 0 &&
               connection_send(session->fd, "\n", 1) == 0;
    line_free(&request);
    return done ? 0 : SESSION_ENDED;
}

int session_send(struct session *session, const char *call, ...)
{
    va_list arguments;
    va_start(arguments, call);
    int code = send_call(session, call, arguments);
    va_end(arguments);
    return code;
}

/* Byte by byte: what follows the line stays in the socket, where poll sees it. */
int session_read(struct session *session, struct line *line)
{
    char c;
    *line = (struct line){0};
    for (;;) {
        ssize_t got = recv(session->fd, &c, 1, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            line_free(line);
            return SESSION_ENDED;
        }
        if (line->length == line->size) {
            line->size = line->size ? 2 * line->size : 256;
            if ((line->text = realloc(line->text, line->size)) == NULL)
                abort();
        }
        line->text[line->length] = c == '\n' ? '\0' : c;
        if (c == '\n')
            return 0;
        line->length++;
    }
}

int session_ask(struct session *session, struct line *reply, const char *call, ...)
{
    va_list arguments;
    va_start(arguments, call);
    int code = send_call(session, call, arguments);
    va_end(arguments);
    *reply = (struct line){0};
    if (code != 0)
        return code;
    while (session_read(session, reply) == 0) {
        if (reply->text[0] >= '0' && reply->text[0] <= '9')
            return (int)line_next_number(reply);
        line_free(&session->notice);
        session->notice = *reply;
    }
    *reply = (struct line){0};
    return SESSION_ENDED;
}

void mps_directory(char *path, size_t size)
{
    const char *set = getenv("CUDA_MPS_PIPE_DIRECTORY");
    snprintf(path, size, "%s", set != NULL && *set != '\0' ? set : "/tmp/nvidia-mps");
}

int mps_connect(char *token, size_t size)
{
    char directory[4096 - 16], path[4096];
    mps_directory(directory, sizeof directory);
    snprintf(path, sizeof path, "%s/control", directory);
    struct session daemon = {.fd = connection_open(path)};
    struct line line;
    if (daemon.fd < 0)
        return -1;
    if (session_read(&daemon, &line) != 0) {
        close(daemon.fd);
        return -1;
    }
    snprintf(token, size, "%s", line.text);
    line_free(&line);
    return daemon.fd;
}

void session_environment(char *text, size_t size)
{
    static const char *const names[] = {
        "CUDA_VISIBLE_DEVICES",     "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        "CUDA_MPS_CLIENT_PRIORITY", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "CUDA_DEVICE_MAX_CONNECTIONS",
    };
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && length + strlen(names[i]) + strlen(value) + 3 < size)
            length += (size_t)sprintf(text + length, "%s=%s\n", names[i], value);
    }
}
