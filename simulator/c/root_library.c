/* The driver root as a shared library knows it: what lies above the usr/lib it was loaded from. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"

void find_root(char *root, size_t size)
{
    Dl_info self;
    char path[PATH_MAX];
    root[0] = '\0';
    if (dladdr((void *)nvmlShutdown, &self) == 0 || realpath(self.dli_fname, path) == NULL)
        return;
    char *end = NULL;
    for (char *next = path; (next = strstr(next, "/usr/lib")) != NULL; next++)
        end = next;
    if (end != NULL) {
        *end = '\0';
        snprintf(root, size, "%s", path);
    }
}
