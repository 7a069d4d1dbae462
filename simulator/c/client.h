/* How a C program asks the node process. The protocol is described in simulator/wire.py. */
#ifndef SIMULATOR_CLIENT_H
#define SIMULATOR_CLIENT_H

#include <stddef.h>

#include "nvml.h"

/* A line under construction or being read. Zeroed is empty; line_free gives it back. */
struct line {
    char *text;
    size_t length, size, at;
};

/* The real path of this program or library, "" where it is not told.
   Defined by root_library.c and root_program.c. */
void find_self(char *path, size_t size);

/* Reference-counted; the first one looks at /dev for the GPUs this client may open. */
nvmlReturn_t client_init(unsigned flags);
nvmlReturn_t client_shutdown(void);
nvmlReturn_t client_stub(void); /* what a function answers that is not simulated */

/* Make one call. `shape` is the arguments, a colon, the results:
     d  any handle in, its address out         u  unsigned in, unsigned * out
     s  const char * in, char * and unsigned length out
     U  unsigned long long in, its address out  i  int * out
     *  struct line * out: the whole reply, read on with line_next (the caller frees it)
   A null pointer is INVALID_ARGUMENT; a text too long for its buffer INSUFFICIENT_SIZE. */
nvmlReturn_t client_ask(const char *call, const char *shape, ...);

/* A call of any number of texts; the whole reply in `reply`, which the caller frees. */
nvmlReturn_t client_command(const char *call, int count, char **arguments, struct line *reply);

/* The handle for a token of a reply: one pointer for each, unless it was not used for long. */
nvmlDevice_t client_handle(const char *token);

/* The next field of a line, unescaped in place; NULL when there is none. */
char *line_next(struct line *line);
unsigned long long line_next_number(struct line *line);
void line_put(struct line *line, const char *field);
void line_free(struct line *line);

/* Look at /dev without initialising NVML: what may be opened, for requests of session.c. */
nvmlReturn_t client_look(const char **view, const char **socket_path);

/* connection.c: send a request and read its reply; 0, or -1 with errno when nobody answers.
   Any number of threads may ask at once, and a restarted node process is found again. */
int connection_exchange(const char *socket_path, const struct line *request, struct line *reply);
void connection_close_idle(void);
int connection_open(const char *socket_path);              /* of one's own: a descriptor, or -1 */
int connection_send(int fd, const char *text, size_t length); /* all of it: 0, or -1 */

#endif
