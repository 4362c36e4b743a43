#define _GNU_SOURCE
#include "CFile.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int mill_file_reserve(int descriptor, off_t size) {
#ifdef FALLOC_FL_KEEP_SIZE
    while (fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, size) != 0) {
        if (errno == EINTR) continue;
        return errno == EOPNOTSUPP || errno == ENOSYS ? 0 : errno;
    }
#else
    (void)descriptor;
    (void)size;
    return 1;
#endif
    return 0;
}

void mill_file_prefetch(int descriptor, off_t offset, off_t count) {
#ifdef POSIX_FADV_WILLNEED
    (void)posix_fadvise(descriptor, offset, count, POSIX_FADV_WILLNEED);
#else
    (void)descriptor;
    (void)offset;
    (void)count;
#endif
}

int mill_file_open_direct(int descriptor) {
#ifdef O_DIRECT
    // By its descriptor: whatever name the file has now.
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    return open(path, O_WRONLY | O_DIRECT | O_CLOEXEC);
#else
    (void)descriptor;
    return -1;
#endif
}
