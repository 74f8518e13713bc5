// Threads print without a lock of their own: the stream has one, which symdpor does not see.
#include "threads.h"

static void *body(void *argument)
{
    printf("hello from %d\n", (int)(uintptr_t)argument);
    fflush(stdout);
    return NULL;
}

int main(void)
{
    two_threads(body);
    return 0;
}
