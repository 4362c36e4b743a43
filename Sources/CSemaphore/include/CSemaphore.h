#pragma once
#include <semaphore.h>
#include <stdint.h>

/// Waits for a semaphore for so long and no longer, whatever becomes of the time of day: 0, or ETIMEDOUT. glibc's sem_clockwait, which Swift's
/// import of the C library does not have.
int mill_semaphore_wait(sem_t *semaphore, int64_t nanoseconds);
