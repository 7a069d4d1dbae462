/* nvidia-cuda-mps-control's two halves: the shell that talks to a daemon, and the daemon. */
#ifndef SIMULATOR_MPS_H
#define SIMULATOR_MPS_H

#define DAEMON_VARIABLE "SIMULATOR_MPS_DAEMON" /* which daemon a server belongs to */
#define NO_DAEMON "Cannot find MPS control daemon process\n"
#define OCCUPIED "Cannot send command to MPS control daemon process\n"

/* What a shell asks for with one byte, and what it is answered with. */
enum { SHELL = 'U', FREE = '1', TAKEN = '0' };

struct options {
    int background, foreground, multiuser;
};

/* mps_daemon.c: serve until told to end; the exit status. With `background`, that of the parent. */
int daemon_run(const struct options *options);

#endif
