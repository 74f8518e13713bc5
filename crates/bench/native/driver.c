// Runs a program that was compiled without the pass in a loop, to have something to compare an execution with.
//
// Linked with the program, whose main has been renamed. Threads are called like functions when they are created, so that what
// is measured are the program's own instructions and nothing of the kernel's; global variables are put back each time,
// and the time that takes is subtracted. A program that cannot go on without another thread (a wait for a condition)
// has no such figure. The process, having run the program once, is also forked in a loop: once as it is, once with
// children that write to 20 pages before they exit, as an execution does.
//
// Output: nanoseconds of one run (0 if there is none), of one fork, of one fork with 20 pages written.
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#undef main

enum { BATCHES = 10, PAGES = 20, PAGE = 4096 };

int program_main();

// The linker's names for the beginning and the end of the writable data.
extern char __data_start[], _end[];

static char *copy;
static jmp_buf blocked;
// Not among the data that is put back.
static char *pages;

int pthread_create(pthread_t *thread, const pthread_attr_t *unused, void *(*start)(void *), void *argument)
{
    (void)unused;
    *thread = 0;
    start(argument);
    return 0;
}

int pthread_join(pthread_t unused, void **result)
{
    (void)unused;
    if (result)
        *result = NULL;
    return 0;
}

int pthread_cond_wait(pthread_cond_t *unused, pthread_mutex_t *also_unused)
{
    (void)unused, (void)also_unused;
    longjmp(blocked, 1);
}

static int run(void)
{
    if (setjmp(blocked))
        return 0;
    program_main();
    return 1;
}

static void restore(void)
{
    memcpy(__data_start, copy, _end - __data_start);
}

static void run_and_restore(void)
{
    run();
    restore();
}

static void fork_once(void)
{
    pid_t child = fork();
    if (child < 0)
        exit(1);
    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

static void fork_and_write(void)
{
    pid_t child = fork();
    if (child < 0)
        exit(1);
    if (child == 0) {
        for (int i = 0; i < PAGES; i++)
            *(volatile char *)(pages + i * PAGE) = 2;
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

// Nanoseconds of one call, over as many as take 5 ms.
static double batch(void (*once)(void))
{
    for (long times = 1;; times *= 2) {
        double start = now();
        for (long i = 0; i < times; i++)
            once();
        double elapsed = now() - start;
        if (elapsed >= 5e6)
            return elapsed / times;
    }
}

static double best(void (*once)(void))
{
    double best = batch(once);
    for (int i = 1; i < BATCHES; i++) {
        double next = batch(once);
        best = next < best ? next : best;
    }
    return best;
}

int main(void)
{
    pages = malloc(PAGES * PAGE);
    memset(pages, 1, PAGES * PAGE);
    copy = malloc(_end - __data_start);
    memcpy(copy, __data_start, _end - __data_start);
    int ends = run();
    double fork_alone = best(fork_once), fork_writing = best(fork_and_write);
    restore();
    double own = ends ? best(run_and_restore) - best(restore) : 0;
    printf("%.3f %.0f %.0f\n", own, fork_alone, fork_writing);
    return 0;
}
