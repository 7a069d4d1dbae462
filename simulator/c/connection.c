/* Connections to the node process, kept for reuse. One exchange has a connection to itself, so a
   call that waits holds up no other. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

enum { MAX_IDLE = 8 };

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static int idle[MAX_IDLE];
static int idle_count;
static pid_t idle_owner;

/* A child of fork must not share a conversation with its parent. */
static void disown_after_fork(void)
{
    if (idle_owner != getpid()) {
        while (idle_count > 0)
            close(idle[--idle_count]);
        idle_owner = getpid();
    }
}

/* An idle connection with something to read was closed by the other side. */
static int is_stale(int fd)
{
    struct pollfd state = {.fd = fd, .events = POLLIN};
    return poll(&state, 1, 0) != 0;
}

static int take_idle(void)
{
    int fd = -1;
    pthread_mutex_lock(&idle_lock);
    disown_after_fork();
    while (fd < 0 && idle_count > 0) {
        fd = idle[--idle_count];
        if (is_stale(fd)) {
            close(fd);
            fd = -1;
        }
    }
    pthread_mutex_unlock(&idle_lock);
    return fd;
}

static void give_back(int fd)
{
    pthread_mutex_lock(&idle_lock);
    disown_after_fork();
    if (idle_count < MAX_IDLE) {
        idle[idle_count++] = fd;
        fd = -1;
    }
    pthread_mutex_unlock(&idle_lock);
    if (fd >= 0)
        close(fd);
}

void connection_close_idle(void)
{
    pthread_mutex_lock(&idle_lock);
    disown_after_fork();
    while (idle_count > 0)
        close(idle[--idle_count]);
    pthread_mutex_unlock(&idle_lock);
}

/* A socket's address ends at 107 bytes: a longer path is reached through its directory. */
static int connect_long(int fd, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) < sizeof address.sun_path) {
        memcpy(address.sun_path, path, strlen(path) + 1);
        return connect(fd, (struct sockaddr *)&address, sizeof address);
    }
    const char *name = strrchr(path, '/');
    char *directory = strndup(path, (size_t)(name - path));
    if (directory == NULL)
        return -1;
    int dir = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (dir < 0)
        return -1;
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d%.60s", dir, name);
    int result = connect(fd, (struct sockaddr *)&address, sizeof address);
    int error = errno;
    close(dir);
    errno = error;
    return result;
}

int connection_open(const char *path)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect_long(fd, path) != 0) {
        int error = errno;
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}

int connection_send(int fd, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            return -1;
        text += sent;
        length -= (size_t)sent;
    }
    return 0;
}

/* One line, its newline replaced by a terminator: replies never hold anything after it. */
static int read_line(int fd, struct line *line)
{
    for (;;) {
        if (line->length == line->size) {
            size_t size = line->size ? 2 * line->size : 1024;
            char *text = realloc(line->text, size);
            if (text == NULL)
                return -1;
            line->text = text;
            line->size = size;
        }
        ssize_t got = recv(fd, line->text + line->length, line->size - line->length, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got == 0 ? ECONNRESET : errno;
            return -1;
        }
        line->length += (size_t)got;
        if (line->text[line->length - 1] == '\n') {
            line->text[--line->length] = '\0';
            return 0;
        }
    }
}

int connection_exchange(const char *socket_path, const struct line *request, struct line *reply)
{
    int fd = take_idle();
    if (fd < 0)
        fd = connection_open(socket_path);
    if (fd < 0)
        return -1;
    if (connection_send(fd, request->text, request->length) == 0 && connection_send(fd, "\n", 1) == 0 &&
        read_line(fd, reply) == 0) {
        give_back(fd);
        return 0;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}
