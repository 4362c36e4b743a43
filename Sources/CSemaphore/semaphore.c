#define _GNU_SOURCE
#include "CSemaphore.h"
#include <errno.h>
#include <time.h>

int mill_semaphore_wait(sem_t *semaphore, int64_t nanoseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    int64_t rest = end.tv_nsec + nanoseconds % 1000000000;
    end.tv_sec += nanoseconds / 1000000000 + rest / 1000000000;
    end.tv_nsec = rest % 1000000000;
    while (sem_clockwait(semaphore, CLOCK_MONOTONIC, &end) != 0) {
        if (errno != EINTR) return errno;
    }
    return 0;
}
