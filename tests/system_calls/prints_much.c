// Prints megabytes in every execution.
#include "threads.h"

static void *body(void *argument)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < 100000; i++)
        printf("line %d of thread %d\n", i, (int)(uintptr_t)argument);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    two_threads(body);
    return 0;
}
