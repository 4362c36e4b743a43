#include "CMemory.h"
#include <stdint.h>
#include <sys/mman.h>

enum { LARGE_PAGE = 2 << 20 };

static size_t rounded(size_t size) { return (size + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1); }

void *mill_large_allocate(size_t size) {
    size = rounded(size);
    char *memory = mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    // Only whole aligned pages can be large ones: cut off what is before and after.
    char *aligned = (char *)rounded((uintptr_t)memory);
    if (aligned > memory) munmap(memory, (size_t)(aligned - memory));
    size_t rest = (size_t)(memory + LARGE_PAGE - aligned);
    if (rest > 0) munmap(aligned + size, rest);
#ifdef MADV_HUGEPAGE
    madvise(aligned, size, MADV_HUGEPAGE);
#endif
    return aligned;
}

void mill_large_populate(void *memory, size_t size) {
#ifdef MADV_POPULATE_WRITE
    madvise(memory, rounded(size), MADV_POPULATE_WRITE);
#else
    (void)memory;
    (void)size;
#endif
}

void mill_large_free(void *memory, size_t size) { munmap(memory, rounded(size)); }
