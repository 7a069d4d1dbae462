/* The MPS control daemon: the pipe directory, the logs, and the server's process. What it is told
   to do it is told by the node, where MPS is modelled (simulator/multiplexer.py). */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "mps.h"
#include "session.h"

enum { NODE, LISTENER, SIGNALS, FIRST_PEER, MAX_POLLED = 512, VARIABLES = 16384 };

static struct options options;
static struct session node;
static struct pollfd polled[MAX_POLLED];
static nfds_t polled_count = FIRST_PEER;
static char directory[PATH_MAX - 64], token[64];
static FILE *control_log, *server_log;
static int shell = -1; /* the connection of the shell that is served */
static time_t deadline; /* 0: none */
static int ended;
static int failure = 1; /* what a daemon that cannot start ends with */

/* In the foreground both logs are the output, and no files (535, 550, 580). */
static void write_log(FILE *file, const char *role, long pid, const char *text)
{
    char now[32];
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    strftime(now, sizeof now, "%Y-%m-%d %H:%M:%S", localtime(&at.tv_sec));
    fprintf(file, "[%s.%03ld %s %5ld] %s\n", now, at.tv_nsec / 1000000, role, pid, text);
    fflush(file);
}

static void say(const char *text) { write_log(control_log, "Control", getpid(), text); }

static FILE *open_log(const char *name)
{
    const char *set = getenv("CUDA_MPS_LOG_DIRECTORY");
    const char *folder = set != NULL && *set != '\0' ? set : "/var/log/nvidia-mps";
    char path[PATH_MAX];
    mkdir(folder, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "ae");
    if (file == NULL)
        fprintf(stderr, "Cannot write %s: %s\n", path, strerror(errno));
    return file;
}

/* Held as long as the daemon lives, however it dies: a directory left behind can be used again. */
static int lock_directory(void)
{
    char path[PATH_MAX];
    mkdir(directory, 0777);
    snprintf(path, sizeof path, "%s/control_lock", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        fprintf(stderr, "Cannot use %s: %s\n", directory, strerror(errno));
    else if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    else {
        fputs("An instance of this daemon is already running\n", stdout);
        fflush(stdout); /* the parent of -d ends without */
    }
    return -1;
}

/* A path longer than a socket's address cannot be bound, and the real daemon says no more. */
static int name_socket(struct sockaddr_un *address)
{
    int size = sizeof address->sun_path;
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (snprintf(address->sun_path, (size_t)size, "%s/control", directory) < size)
        return 0;
    fputs(NO_DAEMON, stderr);
    return -1;
}

static int listen_at(const struct sockaddr_un *address)
{
    unlink(address->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(fd, (const struct sockaddr *)address, sizeof *address) != 0 || listen(fd, 64) != 0 ||
        chmod(address->sun_path, 0666) != 0) {
        fprintf(stderr, "Cannot listen at %s: %s\n", address->sun_path, strerror(errno));
        return -1;
    }
    return fd;
}

static void pid_file(char *path, size_t size)
{
    snprintf(path, size, "%s/nvidia-cuda-mps-control.pid", directory);
}

static int write_pid(void)
{
    char path[PATH_MAX];
    pid_file(path, sizeof path);
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return -1;
    fprintf(file, "%d\n", getpid());
    return fclose(file);
}

static int register_there(void)
{
    struct line reply = {0};
    char variables[VARIABLES];
    session_environment(variables, sizeof variables);
    int code = SESSION_ENDED;
    if (session_open(&node) == 0)
        code = session_ask(&node, &reply, "mps_daemon", options.multiuser ? "1" : "0", variables,
                           NULL);
    if (code == CUDA_ERROR_NO_DEVICE) {
        failure = CUDA_ERROR_NO_DEVICE; /* and no word (580, 595) */
        return -1;
    }
    if (code != 0) {
        /* An option that the program does not know makes it a shell (535, 550). */
        fputs(code == SESSION_ENDED ? "The NVIDIA driver does not answer\n" : NO_DAEMON, stderr);
        return -1;
    }
    snprintf(token, sizeof token, "%s", line_next(&reply));
    line_free(&reply);
    return 0;
}

static int signals(void)
{
    sigset_t wanted;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGINT);
    sigprocmask(SIG_BLOCK, &wanted, NULL);
    return signalfd(-1, &wanted, SFD_CLOEXEC);
}

static int start(void)
{
    struct sockaddr_un address;
    if (name_socket(&address) != 0 || lock_directory() != 0)
        return -1;
    control_log = options.foreground ? stdout : open_log("control.log");
    server_log = options.foreground ? stdout : open_log("server.log");
    if (control_log == NULL || server_log == NULL)
        return -1;
    polled[LISTENER].fd = listen_at(&address);
    polled[SIGNALS].fd = signals();
    if (polled[LISTENER].fd < 0 || polled[SIGNALS].fd < 0 || register_there() != 0 ||
        write_pid() != 0)
        return -1;
    polled[NODE].fd = node.fd;
    char text[PATH_MAX + 64];
    snprintf(text, sizeof text, "Starting control daemon using socket %s/control", directory);
    say(text);
    snprintf(text, sizeof text,
             "To connect CUDA applications to this daemon, set env CUDA_MPS_PIPE_DIRECTORY=%s",
             directory);
    say(text);
    return 0;
}

/* The server lies beside the daemon's own program; in a root without /proc, on the PATH. */
static void become_server(uid_t user)
{
    char path[PATH_MAX] = "";
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    char *name = length < 0 ? path : strrchr(path, '/') + 1;
    if ((size_t)(name - path) + 32 > sizeof path)
        _exit(1);
    strcpy(name, "nvidia-cuda-mps-server");
    if (user != geteuid() && (setgid(user) != 0 || setuid(user) != 0))
        _exit(1);
    setenv(DAEMON_VARIABLE, token, 1);
    execlp(path, "nvidia-cuda-mps-server", (char *)NULL);
    _exit(1);
}

static void told(struct line *line)
{
    const char *what = line_next(line), *words[4] = {"", "", "", ""};
    for (int i = 0; i < 4; i++) {
        const char *word = line_next(line);
        words[i] = word == NULL ? "" : word;
    }
    if (strcmp(what, "log") == 0) {
        FILE *file = strcmp(words[0], "server") == 0 ? server_log : control_log;
        write_log(file, words[1], atol(words[2]), words[3]);
    } else if (strcmp(what, "spawn") == 0) {
        if (fork() == 0)
            become_server((uid_t)strtoul(words[0], NULL, 10));
    } else if (strcmp(what, "exit") == 0) {
        long seconds = atol(words[0]);
        ended = seconds == 0;
        deadline = seconds > 0 ? time(NULL) + seconds : deadline;
    }
}

static void serve_node(void)
{
    struct line line;
    if (session_read(&node, &line) != 0) {
        say("The NVIDIA driver does not answer any more");
        ended = 1;
        return;
    }
    told(&line);
    line_free(&line);
}

static void serve_signal(void)
{
    struct signalfd_siginfo info;
    int status;
    if (read(polled[SIGNALS].fd, &info, sizeof info) != sizeof info)
        return;
    ended = ended || info.ssi_signo != SIGCHLD;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
        char number[16], code[16];
        snprintf(number, sizeof number, "%d", pid);
        /* A killed one is told as 0 too (580). */
        snprintf(code, sizeof code, "%d", WIFEXITED(status) ? WEXITSTATUS(status) : 0);
        session_send(&node, "mps_exited", number, code, NULL);
    }
}

/* Who connects is handed the token, and holds on to the daemon as long as it likes. */
static void welcome(void)
{
    int fd = accept4(polled[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    say("Accepting connection...");
    if (polled_count == MAX_POLLED || connection_send(fd, token, strlen(token)) != 0 ||
        connection_send(fd, "\n", 1) != 0) {
        close(fd);
        return;
    }
    polled[polled_count++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

static void serve_shell(int fd)
{
    const char answer = shell < 0 ? FREE : TAKEN;
    if (shell < 0) {
        shell = fd;
        say("NEW UI");
    }
    connection_send(fd, &answer, 1);
}

static void leave(int fd)
{
    if (fd == shell) {
        shell = -1;
        say("UI closed");
    }
    close(fd);
}

static void serve_peers(void)
{
    char byte;
    for (nfds_t i = FIRST_PEER; i < polled_count; i++) {
        if (polled[i].revents == 0)
            continue;
        if (recv(polled[i].fd, &byte, 1, MSG_DONTWAIT) <= 0) {
            leave(polled[i].fd);
            polled[i--] = polled[--polled_count];
        } else if (byte == SHELL)
            serve_shell(polled[i].fd);
    }
}

static void serve(void)
{
    for (nfds_t i = 0; i < FIRST_PEER; i++)
        polled[i].events = POLLIN;
    while (!ended && (deadline == 0 || time(NULL) < deadline)) {
        if (poll(polled, polled_count, deadline ? 200 : -1) < 0)
            continue;
        serve_peers(); /* first: it moves what welcome would add */
        if (polled[NODE].revents != 0)
            serve_node();
        if (polled[SIGNALS].revents != 0)
            serve_signal();
        if (polled[LISTENER].revents != 0)
            welcome();
    }
}

static void stop(void)
{
    char path[PATH_MAX];
    say("Exit");
    pid_file(path, sizeof path);
    unlink(path);
    close(node.fd); /* upon which the node ends the server */
    while (wait(NULL) > 0 || errno == EINTR)
        ;
}

/* The parent ends when the daemon listens; until then both write to the same terminal. */
static int detach(void)
{
    int ready[2];
    char byte;
    if (pipe2(ready, O_CLOEXEC) != 0)
        return 1;
    pid_t child = fork();
    if (child != 0) {
        close(ready[1]);
        return child < 0 || read(ready[0], &byte, 1) != 1;
    }
    setsid();
    if (start() != 0)
        _exit(failure);
    int null = open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; fd++)
        dup2(null, fd);
    if (write(ready[1], "", 1) != 1)
        _exit(1);
    close(ready[0]);
    close(ready[1]);
    serve();
    stop();
    _exit(0);
}

int daemon_run(const struct options *given)
{
    options = *given;
    umask(0); /* clients of any user use the directory */
    mps_directory(directory, sizeof directory);
    if (options.background)
        return detach();
    if (start() != 0)
        return failure;
    serve();
    stop();
    return 0;
}
