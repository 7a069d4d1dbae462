/* Where a program lies: what was started. */
#include <unistd.h>

#include "client.h"

void find_self(char *path, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", path, size - 1);
    path[length < 0 ? 0 : length] = '\0';
}
