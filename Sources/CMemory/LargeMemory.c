#include "CMemory.h"
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LARGE_PAGE = 2 << 20, RANGES_MAX = 1024, UNNEEDED_SECONDS = 10 };

/// Memory that was given back and is kept to be handed out again. It was paid for once: a page that is new to a virtual machine costs its
/// host milliseconds, and every thread of the process waits for the system's lock while memory is mapped and unmapped.
typedef struct {
    char *start;
    size_t size;
} Range;

/// By address, none next to another.
static Range ranges[RANGES_MAX];
static size_t range_count;
static size_t kept_bytes;
/// The least that was kept since `since`, which nobody has needed.
static size_t unneeded_bytes;
static time_t since;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t rounded(size_t size) { return (size + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1); }

static void *map(size_t size) {
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

/// The number of ranges that begin below an address.
static size_t ranges_below(const char *start) {
    size_t low = 0, high = range_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].start < start) low = middle + 1;
        else high = middle;
    }
    return low;
}

static void remove_range(size_t index) {
    range_count -= 1;
    memmove(&ranges[index], &ranges[index + 1], (range_count - index) * sizeof(Range));
}

/// The end of the smallest range that is large enough, so that large ones stay whole; NULL when there is none.
static void *take(size_t size) {
    size_t best = range_count;
    for (size_t index = 0; index < range_count; index++) {
        if (ranges[index].size >= size && (best == range_count || ranges[index].size < ranges[best].size)) best = index;
    }
    if (best == range_count) return NULL;
    kept_bytes -= size;
    if (unneeded_bytes > kept_bytes) unneeded_bytes = kept_bytes;
    ranges[best].size -= size;
    char *memory = ranges[best].start + ranges[best].size;
    if (ranges[best].size == 0) remove_range(best);
    return memory;
}

/// False when it can only go back to the system: there are too many ranges.
static bool keep(char *memory, size_t size) {
    size_t next = ranges_below(memory);
    bool follows = next > 0 && ranges[next - 1].start + ranges[next - 1].size == memory;
    bool precedes = next < range_count && memory + size == ranges[next].start;
    if (follows) {
        ranges[next - 1].size += size;
        if (precedes) {
            ranges[next - 1].size += ranges[next].size;
            remove_range(next);
        }
    } else if (precedes) {
        ranges[next].start = memory;
        ranges[next].size += size;
    } else {
        if (range_count == RANGES_MAX) return false;
        memmove(&ranges[next + 1], &ranges[next], (range_count - next) * sizeof(Range));
        ranges[next] = (Range){memory, size};
        range_count += 1;
    }
    kept_bytes += size;
    return true;
}

/// Takes so much out of what is kept; how many ranges are to go back to the system. The caller does that without the lock: hundreds of
/// megabytes take it milliseconds.
static size_t give_up(size_t bytes, Range *given) {
    kept_bytes -= bytes;
    if (unneeded_bytes > kept_bytes) unneeded_bytes = kept_bytes;
    size_t count = 0;
    while (bytes > 0) {
        Range *last = &ranges[range_count - 1];
        size_t size = last->size < bytes ? last->size : bytes;
        last->size -= size;
        given[count++] = (Range){last->start + last->size, size};
        if (last->size == 0) range_count -= 1;
        bytes -= size;
    }
    return count;
}

static size_t give_up_unneeded(Range *given) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec - since < UNNEEDED_SECONDS) return 0;
    size_t count = give_up(unneeded_bytes, given);
    unneeded_bytes = kept_bytes;
    since = now.tv_sec;
    return count;
}

static void give_back(const Range *given, size_t count) {
    for (size_t index = 0; index < count; index++) munmap(given[index].start, given[index].size);
}

void *mill_large_allocate(size_t size, bool zeroed) {
    size = rounded(size);
    pthread_mutex_lock(&lock);
    void *memory = take(size);
    pthread_mutex_unlock(&lock);
    if (memory != NULL) {
        if (zeroed) memset(memory, 0, size);
        return memory;
    }
    memory = map(size);
    if (memory != NULL) return memory;
    // What is kept in pieces too small may be what the system lacks.
    Range given[RANGES_MAX];
    pthread_mutex_lock(&lock);
    size_t count = give_up(kept_bytes, given);
    pthread_mutex_unlock(&lock);
    give_back(given, count);
    return map(size);
}

void mill_large_populate(void *memory, size_t size) {
#ifdef MADV_POPULATE_WRITE
    madvise(memory, rounded(size), MADV_POPULATE_WRITE);
#else
    (void)memory;
    (void)size;
#endif
}

void mill_large_free(void *memory, size_t size) {
    size = rounded(size);
    Range given[RANGES_MAX];
    pthread_mutex_lock(&lock);
    bool kept = keep(memory, size);
    size_t count = give_up_unneeded(given);
    pthread_mutex_unlock(&lock);
    give_back(given, count);
    if (!kept) munmap(memory, size);
}

void mill_large_trim(void) {
    Range given[RANGES_MAX];
    pthread_mutex_lock(&lock);
    size_t count = give_up_unneeded(given);
    pthread_mutex_unlock(&lock);
    give_back(given, count);
}
