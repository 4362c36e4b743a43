#define _GNU_SOURCE
#include "CFile.h"
#include <fcntl.h>

void mill_file_reserve(int descriptor, off_t size) {
#ifdef FALLOC_FL_KEEP_SIZE
    (void)fallocate(descriptor, FALLOC_FL_KEEP_SIZE, 0, size);
#else
    (void)descriptor;
    (void)size;
#endif
}
