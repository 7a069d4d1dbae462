/* nvidia-cuda-mps-server: started by the control daemon, there until the node hangs up. */
#include <stdio.h>
#include <stdlib.h>

#include "mps.h"
#include "session.h"

int main(void)
{
    struct session session;
    struct line line;
    const char *token = getenv(DAEMON_VARIABLE);
    if (token == NULL) {
        fprintf(stderr, "nvidia-cuda-mps-server is started by nvidia-cuda-mps-control\n");
        return 1;
    }
    if (session_open(&session) != 0 || session_ask(&session, &line, "mps_server", token, NULL) != 0)
        return 1;
    do
        line_free(&line);
    while (session_read(&session, &line) == 0);
    return 0;
}
