/* A program that the node knows for as long as its connection lives: see simulator/sessions.py. */
#ifndef SIMULATOR_SESSION_H
#define SIMULATOR_SESSION_H

#include "client.h"

enum {
    SESSION_ENDED = -1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_NOT_READY = 600
};

struct session {
    int fd;
    struct line notice; /* the last line the node sent by itself; empty when it sent none */
};

/* Connect to the node; 0, or -1 where it does not run or the driver's device cannot be opened. */
int session_open(struct session *session);

/* Send a call and read its reply: a CUresult, or SESSION_ENDED. The arguments end with NULL; the
   caller frees the reply. What the node says by itself meanwhile is kept in `notice`. */
int session_ask(struct session *session, struct line *reply, const char *call, ...);

/* Send a call and leave its reply to session_read. */
int session_send(struct session *session, const char *call, ...);

/* The next line, whoever caused it: 0, or SESSION_ENDED. */
int session_read(struct session *session, struct line *line);

/* The control socket of MPS's pipe directory, and a connection to the daemon that listens there:
   its token is read into `token`. -1 where there is none. */
void mps_directory(char *path, size_t size);
int mps_connect(char *token, size_t size);

/* The variables MPS and CUDA go by, as the node wants them; `size` is enough for any that count. */
void session_environment(char *text, size_t size);

#endif
