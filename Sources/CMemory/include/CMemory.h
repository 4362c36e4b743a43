#pragma once
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

/// Asks for the cache line at `address`, which is about to be read or written. Any address is allowed.
static inline void mill_prefetch(const void *address) { __builtin_prefetch(address, 1, 3); }

/// The same of one that is only read, which other cores may keep.
static inline void mill_prefetch_read(const void *address) { __builtin_prefetch(address, 0, 3); }

/// Memory in whole pages of 2 MiB, where the system has them: a random access then misses the address cache far less often.
/// Zeroed, or of undefined content. NULL when there is none left. `size` is rounded up to 2 MiB. Any thread.
void *mill_large_allocate(size_t size, bool zeroed);

/// Has the system hand out all of it now, as the first write to each part would: so that another thread than the one that writes pays for it.
void mill_large_populate(void *memory, size_t size);

/// Gives back what `mill_large_allocate` gave for the same size. It is kept for others who need large pages; what nobody has needed for
/// ten seconds goes back to the system when this or `mill_large_trim` is called next.
void mill_large_free(void *memory, size_t size);

/// Gives to the system what nobody has needed for ten seconds, for who calls it every second or so.
void mill_large_trim(void);

/// Has `malloc` keep what is freed: 64 MiB of each of its arenas, and blocks of up to 32 MiB. By its own rules it gives 128 KiB back to the
/// system at once, and batches come and go by the megabyte. For a program to call before it has threads; does nothing where `malloc` is
/// not the GNU C library's.
void mill_heap_keep(void);

/// Memory for the values of a batch, aligned to 64 bytes, of undefined content; NULL when there is none left. A thread keeps up to 4 MiB of what it
/// frees for what it allocates next, and 4 MiB of what waits (`mill_batch_caches_are_far`): `malloc` cuts an aligned block out of a larger one, and joins the pieces
/// again, each time. Any thread.
void *mill_batch_allocate(size_t size);

/// Takes back what `mill_batch_allocate` gave for the same size, on any thread.
void mill_batch_free(void *memory, size_t size);

/// Whether writing to memory that another thread's cache holds takes longer than to what no cache does, as it was seen last: buffers that other
/// threads allocated then wait until 2 MiB more of such have been freed. Of the whole process. Any thread.
void mill_batch_caches_are_far(bool are_far);

/// Lets another thread run, for who waits for a few instructions of it.
static inline void mill_yield(void) { sched_yield(); }
