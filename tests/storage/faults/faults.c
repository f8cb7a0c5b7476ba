/* Preloaded into a process: lets the n-th write, sync, read or truncation of the files in one folder fail, be cut short or
 * do nothing, and records everything that reaches them, so that a loss of power can be played.
 *
 * Python arms it through ctypes (`preloaded.py`). Calls are recognised by the path of their descriptor, which Linux shows
 * in /proc. Only files with .db in their names count, without -shm, which is memory, and -turn, which is always empty.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { WRITE, SYNC, READ, TRUNCATE, KINDS };
enum manner { ERROR, FULL, SHORT, DROP };
enum record { WROTE = 1, SYNCED, CUT, RENAMED, UNLINKED, MARKED };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char folder[4096];
static long seen[KINDS], fired, target;
static int armed = -1, manner;
static FILE *record_file;

void fault_watch(const char *path) { snprintf(folder, sizeof folder, "%s/", path); }

/* Count calls from now on, and let call number n of this kind go wrong; kind -1 only counts. */
void fault_arm(int kind, long n, int how) {
    pthread_mutex_lock(&lock);
    memset(seen, 0, sizeof seen);
    fired = 0, target = n, manner = how, armed = kind;
    pthread_mutex_unlock(&lock);
}

long fault_disarm(void) {
    pthread_mutex_lock(&lock);
    armed = -1;
    long times = fired;
    pthread_mutex_unlock(&lock);
    return times;
}

long fault_seen(int kind) { return seen[kind]; }

static int path_of(int descriptor, char *path, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, size - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return 1;
}

static int is_watched(const char *path) {
    size_t length = strlen(path);
    if (!folder[0] || strncmp(path, folder, strlen(folder)) || !strstr(path, ".db")) return 0;
    return !(length > 4 && !strcmp(path + length - 4, "-shm")) && !(length > 5 && !strcmp(path + length - 5, "-turn"));
}

static void put(int what, const char *path, uint64_t offset, uint64_t length, const void *bytes) {
    uint64_t head[4] = {(uint64_t)what, strlen(path), offset, length};
    fwrite(head, sizeof head, 1, record_file);
    fwrite(path, 1, strlen(path), record_file);
    if (bytes) fwrite(bytes, 1, length, record_file);
}

static void note(int what, const char *path, uint64_t offset, uint64_t length, const void *bytes) {
    pthread_mutex_lock(&lock);
    if (record_file) put(what, path, offset, length, bytes);
    pthread_mutex_unlock(&lock);
}

/* Record to this file from now on; NULL ends it. */
void fault_record(const char *path) {
    pthread_mutex_lock(&lock);
    if (record_file) fclose(record_file);
    record_file = path ? fopen(path, "wb") : NULL;
    pthread_mutex_unlock(&lock);
}

void fault_mark(uint64_t number) { note(MARKED, "", number, 0, NULL); }

/* Whether this call goes wrong. */
static int goes_wrong(int kind) {
    pthread_mutex_lock(&lock);
    long number = ++seen[kind];
    int wrong = armed == kind && (number == target || (manner == FULL && number > target));
    fired += wrong;
    pthread_mutex_unlock(&lock);
    return wrong;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

static ssize_t written(int descriptor, const char *path, const void *bytes, size_t count, off_t offset) {
    static ssize_t (*real)(int, const void *, size_t, off64_t);
    if (!real) real = (ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64");
    if (goes_wrong(WRITE)) {
        if (manner == ERROR) return errno = EIO, -1;
        if (manner == FULL) return errno = ENOSPC, -1;
        if (manner == DROP) return (ssize_t)count;
        /* As on a disk that gets full: a part is written, and no call after it writes more. */
        size_t part = count / 2;
        if (!part) return errno = ENOSPC, -1;
        ssize_t done = real(descriptor, bytes, part, offset);
        if (done > 0) note(WROTE, path, (uint64_t)offset, (uint64_t)done, bytes);
        pthread_mutex_lock(&lock);
        manner = FULL;
        pthread_mutex_unlock(&lock);
        return done;
    }
    ssize_t done = real(descriptor, bytes, count, offset);
    if (done > 0) note(WROTE, path, (uint64_t)offset, (uint64_t)done, bytes);
    return done;
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    REAL(write);
    char path[4096];
    if (!folder[0] || !path_of(descriptor, path, sizeof path) || !is_watched(path)) return real(descriptor, bytes, count);
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    ssize_t done = written(descriptor, path, bytes, count, offset);
    if (done > 0) lseek(descriptor, offset + done, SEEK_SET);
    return done;
}

#define PWRITE(name, type)                                                                       \
    ssize_t name(int descriptor, const void *bytes, size_t count, type offset) {                \
        REAL(name);                                                                              \
        char path[4096];                                                                         \
        if (!folder[0] || !path_of(descriptor, path, sizeof path) || !is_watched(path))          \
            return real(descriptor, bytes, count, offset);                                       \
        return written(descriptor, path, bytes, count, offset);                                  \
    }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

static int read_wrong(size_t *count) {
    if (!goes_wrong(READ)) return 0;
    if (manner == ERROR || manner == FULL) return errno = EIO, -1;
    *count /= 2;
    return 1;
}

ssize_t read(int descriptor, void *bytes, size_t count) {
    REAL(read);
    char path[4096];
    if (!folder[0] || !path_of(descriptor, path, sizeof path) || !is_watched(path)) return real(descriptor, bytes, count);
    return read_wrong(&count) < 0 ? -1 : real(descriptor, bytes, count);
}

#define PREAD(name, type)                                                                        \
    ssize_t name(int descriptor, void *bytes, size_t count, type offset) {                      \
        REAL(name);                                                                              \
        char path[4096];                                                                         \
        if (!folder[0] || !path_of(descriptor, path, sizeof path) || !is_watched(path))          \
            return real(descriptor, bytes, count, offset);                                       \
        return read_wrong(&count) < 0 ? -1 : real(descriptor, bytes, count, offset);             \
    }
PREAD(pread, off_t)
PREAD(pread64, off64_t)

#define SYNC_CALL(name)                                                                          \
    int name(int descriptor) {                                                                   \
        REAL(name);                                                                              \
        char path[4096];                                                                         \
        if (!folder[0] || !path_of(descriptor, path, sizeof path) || !is_watched(path))          \
            return real(descriptor);                                                             \
        if (goes_wrong(SYNC)) return manner == DROP ? 0 : (errno = EIO, -1);                     \
        int done = real(descriptor);                                                             \
        if (!done) note(SYNCED, path, 0, 0, NULL);                                               \
        return done;                                                                             \
    }
SYNC_CALL(fsync)
SYNC_CALL(fdatasync)

#define TRUNCATE_CALL(name, type)                                                                \
    int name(int descriptor, type size) {                                                        \
        REAL(name);                                                                              \
        char path[4096];                                                                         \
        if (!folder[0] || !path_of(descriptor, path, sizeof path) || !is_watched(path))          \
            return real(descriptor, size);                                                       \
        if (goes_wrong(TRUNCATE)) return manner == DROP ? 0 : (errno = EIO, -1);                 \
        int done = real(descriptor, size);                                                       \
        if (!done) note(CUT, path, (uint64_t)size, 0, NULL);                                     \
        return done;                                                                             \
    }
TRUNCATE_CALL(ftruncate, off_t)
TRUNCATE_CALL(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
    REAL(rename);
    int done = real(from, to);
    if (!done && is_watched(to)) note(RENAMED, from, 0, strlen(to), to);
    return done;
}

int unlink(const char *path) {
    REAL(unlink);
    int done = real(path);
    if (!done && is_watched(path)) note(UNLINKED, path, 0, 0, NULL);
    return done;
}
