/* nvidia-cuda-mps-control (protocol v2): starts a daemon, or sends it commands from stdin. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mps.h"
#include "session.h"

enum { TOKEN = 64, TRIES = 40, PAUSE_US = 50000 };

static int usage(FILE *out, int status)
{
    fprintf(out, "This nvidia-cuda-mps-control is simulated. It knows:\n"
                 "  -d                     start the daemon in the background\n"
                 "  -f                     start the daemon in the foreground\n"
                 "  -multiuser-server, -M  with -d or -f: one server for all users\n"
                 "  -v                     print the version\n"
                 "  -h                     print this\n"
                 "Without an option it reads commands from its standard input; help lists them.\n");
    return status;
}

static int version(void)
{
    struct session session;
    struct line line = {0};
    if (session_open(&session) != 0)
        return 1;
    int code = session_ask(&session, &line, "mps_version", NULL);
    if (code == 0)
        printf("CUDA MPS Control binary version: %s\n", line_next(&line));
    line_free(&line);
    return code == 0 ? 0 : 1;
}

/* One command, answered on stdout; whether there was anything to say is in `answered`. */
static int command(struct session *session, const char *token, char *text, int *answered)
{
    struct line reply;
    text[strcspn(text, "\r\n")] = '\0';
    if (text[strspn(text, " \t")] == '\0')
        return 0;
    int code = session_ask(session, &reply, "mps_command", token, text, NULL);
    const char *answer = code == 0 ? line_next(&reply) : NULL;
    *answered = answer != NULL && *answer != '\0';
    if (*answered)
        printf("%s\n", answer);
    fflush(stdout);
    line_free(&reply);
    return code;
}

/* The daemon serves one shell at a time; the others wait for a moment and give up. */
static int enter(int daemon)
{
    const char wish = SHELL;
    char answer = TAKEN;
    for (int tries = 0; tries < TRIES && answer != FREE; tries++) {
        if (tries > 0)
            usleep(PAUSE_US);
        if (connection_send(daemon, &wish, 1) != 0 || read(daemon, &answer, 1) != 1)
            return -1;
    }
    return answer == FREE ? 0 : -1;
}

static int shell(void)
{
    char token[TOKEN], *text = NULL;
    size_t size = 0;
    struct session session;
    int code = 0, quit = 0, answered = 0, daemon = mps_connect(token, sizeof token);
    if (daemon < 0 || session_open(&session) != 0) {
        fputs(NO_DAEMON, stderr);
        return 1;
    }
    if (enter(daemon) != 0) {
        fputs(OCCUPIED, stderr);
        return 1;
    }
    while (code == 0 && !quit && getline(&text, &size, stdin) > 0) {
        quit = strncmp(text + strspn(text, " \t"), "quit", 4) == 0;
        code = command(&session, token, text, &answered);
        quit = quit && !answered; /* a quit that was refused says why */
    }
    if (code != 0)
        fputs(NO_DAEMON, stderr);
    while (code == 0 && quit && read(daemon, token, sizeof token) > 0) /* until it is gone */
        ;
    free(text);
    return code == 0 ? 0 : 1;
}

static int read_option(struct options *options, const char *argument)
{
    if (strcmp(argument, "-d") == 0)
        options->background = 1;
    else if (strcmp(argument, "-f") == 0)
        options->foreground = 1;
    else if (strcmp(argument, "-M") == 0 || strcmp(argument, "-multiuser-server") == 0 ||
             strcmp(argument, "--multiuser-server") == 0)
        options->multiuser = 1;
    else
        return -1;
    return 0;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-h") == 0 || strcmp(argv[i], "--help") == 0)
            return usage(stdout, 0);
        if (strcmp(argv[i], "-v") == 0)
            return version();
        if (read_option(&options, argv[i]) != 0) {
            fprintf(stderr, "%s: not known here\n", argv[i]);
            return usage(stderr, 1);
        }
    }
    if (options.background && options.foreground)
        return usage(stderr, 1);
    if (options.background || options.foreground)
        return daemon_run(&options);
    return options.multiuser ? usage(stderr, 1) : shell();
}
