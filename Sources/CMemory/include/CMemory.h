#pragma once
#include <sched.h>
#include <stddef.h>

/// Asks for the cache line at `address`, which is about to be read or written. Any address is allowed.
static inline void mill_prefetch(const void *address) { __builtin_prefetch(address, 1, 3); }

/// Zeroed memory in whole pages of 2 MiB, where the system has them: a random access then misses the address cache far less often.
/// NULL when there is none left. `size` is rounded up to 2 MiB.
void *mill_large_allocate(size_t size);

/// Has the system hand out all of it now, as the first write to each part would: so that another thread than the one that writes pays for it.
void mill_large_populate(void *memory, size_t size);

/// Gives back what `mill_large_allocate` gave for the same size.
void mill_large_free(void *memory, size_t size);

/// Lets another thread run, for who waits for a few instructions of it.
static inline void mill_yield(void) { sched_yield(); }
