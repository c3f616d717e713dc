/* Notes each name that a process passes to getenv or secure_getenv, a line each, in the file GETENV_LOG. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

static char *lookup(const char *name) {
    size_t length = strlen(name);
    for (char **each = environ; each && *each; each++)
        if (!strncmp(*each, name, length) && (*each)[length] == '=')
            return *each + length + 1;
    return NULL;
}

static void note(const char *name) {
    static int log = -2;
    if (log == -2) {
        const char *path = lookup("GETENV_LOG");
        log = path ? open(path, O_WRONLY | O_CREAT | O_APPEND, 0644) : -1;
    }
    char line[256];
    size_t length = strlen(name);
    if (log >= 0 && length < sizeof line - 1) {
        memcpy(line, name, length);
        line[length] = '\n';
        if (write(log, line, length + 1) < 0)
            log = -1;
    }
}

char *getenv(const char *name) { note(name); return lookup(name); }
char *secure_getenv(const char *name) { note(name); return lookup(name); }
