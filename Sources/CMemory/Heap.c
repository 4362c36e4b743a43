#include "CMemory.h"
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { TRIM_BYTES = 64 << 20, MAP_BYTES = 32 << 20 };

void mill_heap_keep(void) {
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, TRIM_BYTES);
    mallopt(M_MMAP_THRESHOLD, MAP_BYTES);
#endif
}
