/* Functions of NVML that ask one thing of a GPU: of it all, or of a part that has a number (a link,
   a clock, a sensor). */
#ifndef SIMULATOR_CALLS_H
#define SIMULATOR_CALLS_H

#include "client.h"

#define ASK client_ask

#define TEXT(function, call)                                                       \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, char *text, unsigned length) \
    {                                                                              \
        return ASK(call, "d:s", device, text, length);                             \
    }
#define NUMBER(function, call)                                          \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *number) \
    {                                                                   \
        return ASK(call, "d:u", device, number);                        \
    }
#define NUMBERS(function, call)                                                           \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned *first, unsigned *second)  \
    {                                                                                     \
        return ASK(call, "d:uu", device, first, second);                                  \
    }
#define OF_PART(function, call)                                                        \
    EXPORT nvmlReturn_t function(nvmlDevice_t device, unsigned part, unsigned *number) \
    {                                                                                  \
        return ASK(call, "du:u", device, part, number);                                \
    }

#endif
