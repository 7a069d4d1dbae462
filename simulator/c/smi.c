/* nvidia-smi: the node process knows what the real one would say; this sends it the command line.
   See simulator/smi/. */
#include <stdio.h>

#include "client.h"

enum { MOST = 255 };

static int cannot_start(nvmlReturn_t code)
{
    if (code == NVML_ERROR_DRIVER_NOT_LOADED)
        printf("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
               "Make sure that the latest NVIDIA driver is installed and running.\n\n");
    else
        printf("Failed to initialize NVML: %s\n", nvmlErrorString(code));
    return code > MOST ? MOST : code;
}

int main(int argc, char **argv)
{
    struct line reply = {0};
    nvmlReturn_t code = client_init(NVML_INIT_FLAG_NO_GPUS);
    if (code == NVML_SUCCESS)
        code = client_command("nvidia_smi", argc - 1, argv + 1, &reply);
    if (code != NVML_SUCCESS)
        return cannot_start(code);
    int status = (int)line_next_number(&reply);
    const char *text = line_next(&reply);
    if (text != NULL)
        fputs(text, stdout);
    line_free(&reply);
    client_shutdown();
    return status;
}
