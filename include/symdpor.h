/*
 * symdpor.h: what a test can say to symdpor.
 *
 * Plain C89, and C++. Compiled without symdpor's pass, or run without symdpor, these functions do nothing:
 * symdpor_choose returns 0, symdpor_assume assumes nothing.
 */
#ifndef SYMDPOR_H
#define SYMDPOR_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__) || defined(__clang__)
#define SYMDPOR_UNUSED __attribute__((__unused__))
#else
#define SYMDPOR_UNUSED
#endif

/* A number below n. Each of them is explored. n is at least 1 and at most 65535. */
SYMDPOR_UNUSED static unsigned symdpor_choose(unsigned n)
{
    (void)n;
    return 0;
}

/* Executions in which the condition is 0 are dropped, and counted apart. */
SYMDPOR_UNUSED static void symdpor_assume(int condition)
{
    (void)condition;
}

/*
 * No other thread runs between the two. They may be nested. Waiting in between (for a lock that another holds, for a
 * thread) is an error.
 */
SYMDPOR_UNUSED static void symdpor_atomic_begin(void)
{
}

SYMDPOR_UNUSED static void symdpor_atomic_end(void)
{
}

/* Lets other threads go first. Never needed: they are tried anyway. */
SYMDPOR_UNUSED static void symdpor_yield(void)
{
}

/* Names the calling thread. 15 characters are kept. */
SYMDPOR_UNUSED static void symdpor_thread_name(const char *name)
{
    (void)name;
}

#ifdef __cplusplus
}
#endif

#endif
