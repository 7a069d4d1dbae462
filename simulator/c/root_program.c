/* The driver root as a program knows it: what lies above the usr/bin it was started from. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

void find_root(char *root, size_t size)
{
    static const char place[] = "/usr/bin/";
    char path[PATH_MAX];
    root[0] = '\0';
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0)
        return;
    path[length] = '\0';
    char *name = strrchr(path, '/');
    if (name == NULL)
        return;
    name[1] = '\0';
    size_t end = strlen(path), tail = strlen(place);
    if (end >= tail && strcmp(path + end - tail, place) == 0) {
        path[end - tail] = '\0';
        snprintf(root, size, "%s", path);
    }
}
