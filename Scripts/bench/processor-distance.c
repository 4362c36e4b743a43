// How far processors 0 and 1 lie apart, as a virtual machine is not told: where they share no cache, memory that both touch is slow
// (docs/decisions/026-where-caches-lie-far-apart.md).
//
//     cc -O2 -pthread Scripts/bench/processor-distance.c -o processor-distance && ./processor-distance [TIMES [SECONDS BETWEEN]]
//
// Each line: seconds of the clock; nanoseconds in which a cache line goes to the other processor and comes back; GB/s at which 1 MiB is written
// that nobody else has touched, and that the other processor has read.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1 << 20, LINE = 64, PINGS = 2000, COPIES = 8 };
enum { IDLE, PING, READ, DONE, END };

static _Alignas(128) atomic_int line;
static _Alignas(128) atomic_int order;
static char *memory;
static volatile long sum;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        perror("processor-distance: two processors are needed");
        exit(1);
    }
}

/// The other processor: waits for an order, and says when it is done.
static void *peer(void *unused) {
    pin(1);
    for (;;) {
        switch (atomic_load(&order)) {
        case PING:
            for (int ping = 0; ping < PINGS; ping++) {
                while (atomic_load(&line) != 2 * ping + 1) {}
                atomic_store(&line, 2 * ping + 2);
            }
            atomic_store(&order, DONE);
            break;
        case READ:
            for (size_t at = 0; at < BYTES; at += LINE) sum += memory[at];
            atomic_store(&order, DONE);
            break;
        case END: return unused;
        default: break;
        }
    }
}

static void have(int what) {
    atomic_store(&order, what);
    while (atomic_load(&order) != DONE) {}
}

static double copy_seconds(const char *from) {
    double began = now();
    memcpy(memory, from, BYTES);
    return now() - began;
}

int main(int count, char **arguments) {
    int times = count > 1 ? atoi(arguments[1]) : 20;
    double between = count > 2 ? atof(arguments[2]) : 0.5;
    char *from = malloc(BYTES);
    memory = aligned_alloc(2 * BYTES, 2 * BYTES);
    if (from == NULL || memory == NULL) return 1;
    memset(from, 1, BYTES);
    memset(memory, 1, BYTES);
    pin(0);
    for (int time = 0; time < times; time++) {
        pthread_t thread;
        atomic_store(&order, IDLE);
        atomic_store(&line, 0);
        if (pthread_create(&thread, NULL, peer, NULL) != 0) return 1;
        atomic_store(&order, PING);
        double began = 0;
        for (int ping = 0; ping < PINGS; ping++) {
            // The first one waits for the thread to begin.
            if (ping == 1) began = now();
            atomic_store(&line, 2 * ping + 1);
            while (atomic_load(&line) != 2 * ping + 2) {}
        }
        double there_and_back = (now() - began) / (PINGS - 1);
        while (atomic_load(&order) != DONE) {}
        double own = 0, shared = 0;
        for (int copy = 0; copy < COPIES; copy++) {
            copy_seconds(from);
            own += copy_seconds(from);
            have(READ);
            shared += copy_seconds(from);
        }
        atomic_store(&order, END);
        pthread_join(thread, NULL);
        double bytes = (double)BYTES * COPIES;
        printf("%.1f s  there and back %.0f ns  own memory %.1f GB/s  read by the other %.1f GB/s\n", now(), there_and_back * 1e9, bytes / own * 1e-9,
               bytes / shared * 1e-9);
        fflush(stdout);
        struct timespec pause = {(time_t)between, (long)((between - (time_t)between) * 1e9)};
        nanosleep(&pause, NULL);
    }
    return 0;
}
