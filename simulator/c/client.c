/* One NVML client: how often it initialised, what it may open, its handles, and its calls. */
#include "client.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* By this a file is known as no library of NVIDIA's: what it shows is not seen on hardware. */
__attribute__((used)) static const char simulated[] = "ration-simulated-nvml";

/* What a handle points to, one for each token; those that were used last come first. Every instance
   of MIG that is ever made has tokens of its own, so that those not used for long have to go. */
#define MOST_HANDLES 4096
struct nvmlDevice_st {
    struct nvmlDevice_st *next;
    char token[];
};

static pthread_once_t placed = PTHREAD_ONCE_INIT;
static char root[4096 - 64], socket_path[4096], view[8192];

static pthread_mutex_t client_lock = PTHREAD_MUTEX_INITIALIZER; /* guards all below, and view */
static unsigned references;
static struct nvmlDevice_st *devices;
static unsigned handles;

/* The socket of a root, and whether it is there. */
static int place_socket(void)
{
    snprintf(socket_path, sizeof socket_path, "%s/run/nvidia-persistenced/socket", root);
    return access(socket_path, F_OK) == 0;
}

/* The root is the nearest folder above us that has the socket: that of the host where the driver
   lies in a folder of its own, as on Container-Optimized OS and Talos. While nobody listens it is
   what lies above our usr. */
static void place(void)
{
    char self[sizeof root];
    find_self(self, sizeof self);
    snprintf(root, sizeof root, "%s", self);
    for (char *end; (end = strrchr(root, '/')) != NULL;) {
        *end = '\0';
        if (place_socket())
            return;
    }
    char *above = NULL;
    for (char *next = self; (next = strstr(next, "/usr/")) != NULL; next++)
        above = next;
    snprintf(root, sizeof root, "%.*s", above == NULL ? 0 : (int)(above - self), self);
    place_socket();
}

/* access() asks permissions and the device cgroup without opening what may be a real GPU. */
static int may_open(int dev, const char *name, int mode)
{
    return faccessat(dev, name, mode, AT_EACCESS);
}

/* The minors of the nodes of a folder named PREFIX and a number, added to the view. */
static void add_openable(DIR *dev, const char *prefix, int mode)
{
    size_t length = strlen(view), skip = strlen(prefix);
    const char *comma = "";
    for (struct dirent *entry; (entry = readdir(dev)) != NULL;) {
        const char *number = entry->d_name + skip;
        if (strncmp(entry->d_name, prefix, skip) != 0 || *number == '\0' ||
            number[strspn(number, "0123456789")] != '\0' ||
            may_open(dirfd(dev), entry->d_name, mode) != 0 ||
            length + strlen(number) + 3 > sizeof view)
            continue;
        length += (size_t)sprintf(view + length, "%s%s", comma, number);
        comma = ",";
    }
}

static nvmlReturn_t look_at_dev(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/dev", root);
    DIR *dev = opendir(path);
    if (dev == NULL)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    nvmlReturn_t code = NVML_SUCCESS;
    if (may_open(dirfd(dev), "nvidiactl", R_OK | W_OK) != 0) /* EPERM is the device cgroup's */
        code = errno == EACCES  ? NVML_ERROR_NO_PERMISSION
               : errno == EPERM ? NVML_ERROR_UNKNOWN
                                : NVML_ERROR_DRIVER_NOT_LOADED;
    view[0] = '\0';
    add_openable(dev, "nvidia", R_OK | W_OK);
    closedir(dev);
    strcat(view, "/");
    snprintf(path, sizeof path, "%s/dev/nvidia-caps", root);
    if ((dev = opendir(path)) != NULL) {
        add_openable(dev, "nvidia-cap", R_OK);
        closedir(dev);
    }
    return code;
}

nvmlReturn_t client_look(const char **visible, const char **path)
{
    pthread_once(&placed, place);
    pthread_mutex_lock(&client_lock);
    nvmlReturn_t code = look_at_dev();
    pthread_mutex_unlock(&client_lock);
    *visible = view;
    *path = socket_path;
    return code;
}

static void begin(struct line *request, const char *call)
{
    line_put(request, "1");
    line_put(request, view);
    line_put(request, call);
}

static nvmlReturn_t exchange(struct line *request, struct line *reply)
{
    int answered = connection_exchange(socket_path, request, reply);
    line_free(request);
    if (answered != 0)
        return NVML_ERROR_DRIVER_NOT_LOADED;
    return (nvmlReturn_t)line_next_number(reply);
}

nvmlReturn_t client_init(unsigned flags)
{
    char number[16];
    struct line request = {0}, reply = {0};
    pthread_once(&placed, place);
    pthread_mutex_lock(&client_lock);
    nvmlReturn_t code = references == 0 ? look_at_dev() : NVML_SUCCESS;
    if (code == NVML_SUCCESS) {
        begin(&request, "init");
        snprintf(number, sizeof number, "%u", flags);
        line_put(&request, number);
        code = exchange(&request, &reply);
        line_free(&reply);
    }
    if (code == NVML_SUCCESS)
        references++;
    pthread_mutex_unlock(&client_lock);
    return code;
}

nvmlReturn_t client_shutdown(void)
{
    pthread_mutex_lock(&client_lock);
    nvmlReturn_t code = references > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
    if (references > 0 && --references == 0)
        connection_close_idle();
    pthread_mutex_unlock(&client_lock);
    return code;
}

nvmlReturn_t client_stub(void)
{
    pthread_mutex_lock(&client_lock);
    nvmlReturn_t code = references > 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNINITIALIZED;
    pthread_mutex_unlock(&client_lock);
    return code;
}

/* Take one out of the list: that of a token, or else a handle. NULL where there is none. */
static nvmlDevice_t take_out(const char *token, nvmlDevice_t handle)
{
    for (struct nvmlDevice_st **at = &devices; *at != NULL; at = &(*at)->next) {
        nvmlDevice_t device = *at;
        if (token != NULL ? strcmp(device->token, token) == 0 : device == handle) {
            *at = device->next;
            return device;
        }
    }
    return NULL;
}

static void put_first(nvmlDevice_t device)
{
    device->next = devices;
    devices = device;
}

static void drop_last(void)
{
    struct nvmlDevice_st **at = &devices;
    while ((*at)->next != NULL)
        at = &(*at)->next;
    free(*at);
    *at = NULL;
    handles--;
}

nvmlDevice_t client_handle(const char *token)
{
    if (token == NULL)
        return NULL;
    pthread_mutex_lock(&client_lock);
    nvmlDevice_t device = take_out(token, NULL);
    if (device == NULL && (device = malloc(sizeof *device + strlen(token) + 1)) != NULL) {
        strcpy(device->token, token);
        if (++handles > MOST_HANDLES)
            drop_last();
    }
    if (device != NULL)
        put_first(device);
    pthread_mutex_unlock(&client_lock);
    return device;
}

/* Put the token behind a handle; a pointer that is none is refused. */
static nvmlReturn_t put_token(struct line *request, nvmlDevice_t handle)
{
    pthread_mutex_lock(&client_lock);
    nvmlDevice_t device = take_out(NULL, handle);
    if (device != NULL) {
        put_first(device);
        line_put(request, device->token);
    }
    pthread_mutex_unlock(&client_lock);
    return device == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

static nvmlReturn_t put_argument(struct line *request, char kind, va_list *values)
{
    char number[24];
    const char *text = number;
    if (kind == 'u')
        snprintf(number, sizeof number, "%u", va_arg(*values, unsigned));
    else if (kind == 'U')
        snprintf(number, sizeof number, "%llu", va_arg(*values, unsigned long long));
    else if (kind == 'd')
        return put_token(request, va_arg(*values, nvmlDevice_t));
    else
        text = va_arg(*values, const char *);
    if (text == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    line_put(request, text);
    return NVML_SUCCESS;
}

/* Null pointers are refused before anything is asked, so that a refused call changed nothing. */
static nvmlReturn_t check_results(const char *shape, va_list *values)
{
    nvmlReturn_t code = NVML_SUCCESS;
    for (; *shape != '\0'; shape++) {
        if (va_arg(*values, void *) == NULL)
            code = NVML_ERROR_INVALID_ARGUMENT;
        if (*shape == 's')
            (void)va_arg(*values, unsigned);
    }
    return code;
}

static nvmlReturn_t take_text(const char *field, va_list *values)
{
    char *text = va_arg(*values, char *);
    unsigned length = va_arg(*values, unsigned);
    if (field == NULL)
        return NVML_ERROR_UNKNOWN;
    if (strlen(field) + 1 > length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(text, field);
    return NVML_SUCCESS;
}

static nvmlReturn_t take_handle(const char *token, nvmlDevice_t *device)
{
    if (token == NULL)
        return NVML_ERROR_UNKNOWN;
    *device = client_handle(token);
    return *device == NULL ? NVML_ERROR_MEMORY : NVML_SUCCESS;
}

static nvmlReturn_t take_result(struct line *reply, char kind, va_list *values)
{
    switch (kind) {
    case 'd':
        return take_handle(line_next(reply), va_arg(*values, nvmlDevice_t *));
    case 's':
        return take_text(line_next(reply), values);
    case 'u':
        *va_arg(*values, unsigned *) = (unsigned)line_next_number(reply);
        return NVML_SUCCESS;
    case 'i':
        *va_arg(*values, int *) = (int)line_next_number(reply);
        return NVML_SUCCESS;
    case 'U':
        *va_arg(*values, unsigned long long *) = line_next_number(reply);
        return NVML_SUCCESS;
    default: /* '*': the caller reads on */
        *va_arg(*values, struct line *) = *reply;
        *reply = (struct line){0};
        return NVML_SUCCESS;
    }
}

nvmlReturn_t client_ask(const char *call, const char *shape, ...)
{
    struct line request = {0}, reply = {0};
    nvmlReturn_t code = NVML_SUCCESS;
    va_list values, ahead;
    va_start(values, shape);
    pthread_mutex_lock(&client_lock);
    if (references == 0)
        code = NVML_ERROR_UNINITIALIZED;
    else
        begin(&request, call);
    pthread_mutex_unlock(&client_lock);
    for (; *shape != ':' && code == NVML_SUCCESS; shape++)
        code = put_argument(&request, *shape, &values);
    if (code == NVML_SUCCESS) {
        shape++;
        va_copy(ahead, values);
        code = check_results(shape, &ahead);
        va_end(ahead);
    }
    if (code == NVML_SUCCESS)
        code = exchange(&request, &reply);
    for (; *shape != '\0' && code == NVML_SUCCESS; shape++)
        code = take_result(&reply, *shape, &values);
    va_end(values);
    line_free(&request);
    line_free(&reply);
    return code;
}

nvmlReturn_t client_command(const char *call, int count, char **arguments, struct line *reply)
{
    struct line request = {0};
    pthread_mutex_lock(&client_lock);
    begin(&request, call);
    pthread_mutex_unlock(&client_lock);
    for (int i = 0; i < count; i++)
        line_put(&request, arguments[i]);
    nvmlReturn_t code = exchange(&request, reply);
    if (code != NVML_SUCCESS)
        line_free(reply);
    return code;
}
