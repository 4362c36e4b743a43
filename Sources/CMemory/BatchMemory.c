#include "CMemory.h"
#include <pthread.h>
#include <stdlib.h>

enum {
    ALIGNMENT = 64,
    /// Sizes double in steps of a quarter, so no more than a fifth of a buffer is not asked for.
    STEPS = 4,
    LEAST_LOG2 = 8,
    MOST_LOG2 = 19,
    CLASSES = (MOST_LOG2 - LEAST_LOG2) * STEPS + 1,
    KEPT_BYTES_MAX = 4 << 20,
};

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KEEPS_NOTHING 1
#endif
#endif

/// A buffer that is kept; the list lies in the buffers themselves.
typedef struct Buffer {
    struct Buffer *next;
} Buffer;

/// What one thread keeps.
typedef struct {
    Buffer *first[CLASSES];
    size_t kept_bytes;
    /// It gives back what it keeps when it ends.
    bool is_known;
    /// That has happened; others of its ends may free still.
    bool is_over;
} Kept;

static _Thread_local Kept kept;
static pthread_key_t ends;
static bool has_ends;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/// As a thread ends.
static void release(void *memory) {
    Kept *of_thread = memory;
    for (int class = 0; class < CLASSES; class++) {
        while (of_thread->first[class] != NULL) {
            Buffer *buffer = of_thread->first[class];
            of_thread->first[class] = buffer->next;
            free(buffer);
        }
    }
    of_thread->kept_bytes = 0;
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

void *mill_batch_allocate(size_t size) {
    int class = class_of(&size);
    if (class >= 0 && kept.first[class] != NULL) {
        Buffer *buffer = kept.first[class];
        kept.first[class] = buffer->next;
        kept.kept_bytes -= size;
        return buffer;
    }
    return aligned_alloc(ALIGNMENT, size);
}

void mill_batch_free(void *memory, size_t size) {
    int class = class_of(&size);
#ifndef KEEPS_NOTHING
    if (class >= 0 && kept.kept_bytes + size <= KEPT_BYTES_MAX && !kept.is_over) {
        if (!kept.is_known) {
            pthread_once(&once, make_key);
            kept.is_known = has_ends && pthread_setspecific(ends, &kept) == 0;
        }
        if (kept.is_known) {
            Buffer *buffer = memory;
            buffer->next = kept.first[class];
            kept.first[class] = buffer;
            kept.kept_bytes += size;
            return;
        }
    }
#endif
    free(memory);
}
