#include "CMemory.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 64,
    /// Sizes double in steps of a quarter, so no more than a fifth of a buffer is not asked for, from 256 bytes on.
    STEPS = 4,
    LEAST_LOG2 = 8,
    MOST_LOG2 = 19,
    CLASSES = (MOST_LOG2 - LEAST_LOG2) * STEPS + 1,
    KEPT_BYTES_MAX = 4 << 20,
    /// So much of what others allocated is freed after a buffer of theirs before that is used again: no cache of theirs holds it then.
    WAITING_BYTES = 2 << 20,
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEPS_NOTHING 1
#endif
#endif

typedef struct Kept Kept;

/// What lies before the bytes of a buffer that may be kept, as long as an alignment.
typedef struct Buffer {
    /// Of those that are kept.
    struct Buffer *next;
    /// By the thread that keeps these: only compared, as it may have ended, and another have its place.
    Kept *taken_by;
    /// What the thread had freed by then of what others allocated, this one included.
    size_t waiting_since;
} Buffer;

/// What one thread keeps: used again at once, while its cache has it. What others took and wrote lies in their caches as well; where those lie
/// far away it waits, as writing to it takes up to seven times as long as to what no cache has.
struct Kept {
    Buffer *first[CLASSES];
    size_t byte_count;
    /// What waits, in the order in which it was freed.
    Buffer *waiting_first[CLASSES];
    Buffer *waiting_last[CLASSES];
    size_t waiting_byte_count;
    /// Of all that has been freed so far and was to wait, whether or not it was kept.
    size_t waited_byte_count;
    /// It gives back what it keeps when it ends.
    bool is_known;
    /// That has happened; others of its ends may free still.
    bool is_over;
};

static _Thread_local Kept kept;
static atomic_bool caches_are_far;
static pthread_key_t ends;
static bool has_ends;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void free_all(Buffer *buffer) {
    while (buffer != NULL) {
        Buffer *next = buffer->next;
        free(buffer);
        buffer = next;
    }
}

/// As a thread ends.
static void release(void *memory) {
    Kept *of_thread = memory;
    for (int class = 0; class < CLASSES; class++) {
        free_all(of_thread->first[class]);
        free_all(of_thread->waiting_first[class]);
        of_thread->first[class] = of_thread->waiting_first[class] = NULL;
    }
    of_thread->byte_count = of_thread->waiting_byte_count = 0;
    of_thread->is_over = true;
}

static void make_key(void) { has_ends = pthread_key_create(&ends, release) == 0; }

/// The class of buffers for so many bytes, and how large they are; -1 for what is not kept.
static inline int class_of(size_t *size) {
    if (*size <= (size_t)1 << LEAST_LOG2) {
        *size = (size_t)1 << LEAST_LOG2;
        return 0;
    }
    if (*size > (size_t)1 << MOST_LOG2) {
        *size = (*size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
        return -1;
    }
    // In (2^log2, 2^(log2 + 1)].
    int log2 = 63 - __builtin_clzll(*size - 1);
    size_t step = (size_t)1 << (log2 - 2);
    size_t steps = (*size - ((size_t)1 << log2) + step - 1) / step;
    *size = ((size_t)1 << log2) + steps * step;
    return (log2 - LEAST_LOG2) * STEPS + (int)steps;
}

/// One of `size` bytes that this thread keeps; NULL when there is none.
static inline Buffer *take(int class, size_t size) {
    Buffer *buffer = kept.first[class];
    if (buffer != NULL) {
        kept.first[class] = buffer->next;
        kept.byte_count -= size;
        return buffer;
    }
    buffer = kept.waiting_first[class];
    if (buffer == NULL) return NULL;
    bool is_hot = kept.waited_byte_count - buffer->waiting_since < WAITING_BYTES;
    if (is_hot && atomic_load_explicit(&caches_are_far, memory_order_relaxed)) return NULL;
    kept.waiting_first[class] = buffer->next;
    kept.waiting_byte_count -= size;
    return buffer;
}

/// Whether this thread keeps it from now on.
static inline bool keep(Buffer *buffer, int class, size_t size) {
    bool waits = buffer->taken_by != &kept && atomic_load_explicit(&caches_are_far, memory_order_relaxed);
    if (waits) kept.waited_byte_count += size;
    size_t *byte_count = waits ? &kept.waiting_byte_count : &kept.byte_count;
    if (*byte_count + size > KEPT_BYTES_MAX || kept.is_over) return false;
    if (!kept.is_known) {
        pthread_once(&once, make_key);
        kept.is_known = has_ends && pthread_setspecific(ends, &kept) == 0;
        if (!kept.is_known) return false;
    }
    *byte_count += size;
    if (!waits) {
        buffer->next = kept.first[class];
        kept.first[class] = buffer;
        return true;
    }
    buffer->waiting_since = kept.waited_byte_count;
    buffer->next = NULL;
    if (kept.waiting_first[class] == NULL) {
        kept.waiting_first[class] = buffer;
    } else {
        kept.waiting_last[class]->next = buffer;
    }
    kept.waiting_last[class] = buffer;
    return true;
}

#ifdef KEEPS_NOTHING
void *mill_batch_allocate(size_t size) { return aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1)); }

void mill_batch_free(void *memory, size_t size) { free(memory); }
#else
void *mill_batch_allocate(size_t size) {
    int class = class_of(&size);
    if (class < 0) return aligned_alloc(ALIGNMENT, size);
    Buffer *buffer = take(class, size);
    if (buffer == NULL) buffer = aligned_alloc(ALIGNMENT, ALIGNMENT + size);
    if (buffer == NULL) return NULL;
    buffer->taken_by = &kept;
    return (char *)buffer + ALIGNMENT;
}

void mill_batch_free(void *memory, size_t size) {
    int class = class_of(&size);
    if (class < 0) {
        free(memory);
        return;
    }
    Buffer *buffer = (Buffer *)((char *)memory - ALIGNMENT);
    if (!keep(buffer, class, size)) free(buffer);
}
#endif

void mill_batch_caches_are_far(bool are_far) { atomic_store_explicit(&caches_are_far, are_far, memory_order_relaxed); }
