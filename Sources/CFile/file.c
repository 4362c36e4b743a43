#define _GNU_SOURCE
#include "CFile.h"
#include <errno.h>
#include <fcntl.h>

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
