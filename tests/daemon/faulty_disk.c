// Preloaded into the daemon by the fault tests: the journal's writes and syncs become slow or fail, as a file says.
// FAULTY_DISK names that file; it holds "ok", "slow MILLISECONDS" (each sync takes so long) or "fail ERRNO".
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_journal(int fd) {
    char link[64], target[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof target - 1);
    if (length < 0) return 0;
    target[length] = 0;
    return strstr(target, "journal.redb") != NULL;
}

static int faulty(int fd, int sync) {
    char what[16] = "";
    int number = 0;
    if (!is_journal(fd)) return 0;
    FILE *file = fopen(getenv("FAULTY_DISK"), "re");
    if (!file) return 0;
    if (fscanf(file, "%15s %d", what, &number) < 1) what[0] = 0;
    fclose(file);
    if (sync && !strcmp(what, "slow")) {
        struct timespec pause = {number / 1000, number % 1000 * 1000000L};
        nanosleep(&pause, NULL);
    }
    if (strcmp(what, "fail")) return 0;
    errno = number;
    return 1;
}

int fdatasync(int fd) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return faulty(fd, 1) ? -1 : next(fd);
}

int fsync(int fd) {
    static int (*next)(int);
    if (!next) next = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return faulty(fd, 1) ? -1 : next(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    static ssize_t (*next)(int, const void *, size_t, off64_t);
    if (!next) next = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    return faulty(fd, 0) ? -1 : next(fd, bytes, count, offset);
}

int ftruncate64(int fd, off64_t length) {
    static int (*next)(int, off64_t);
    if (!next) next = (int (*)(int, off64_t))dlsym(RTLD_NEXT, "ftruncate64");
    return faulty(fd, 0) ? -1 : next(fd, length);
}
