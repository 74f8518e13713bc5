// What the programs here have in common: two threads, and checks that hold in every execution.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "line %d: %s (errno %d)\n", __LINE__, #condition, errno);                                  \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

static void *nothing(void *argument)
{
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

// Runs two threads, with 1 and 2 as arguments, to their ends.
static void two_threads(void *(*body)(void *))
{
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, body, (void *)(i + 1)) == 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}
