// Every order in which thread 1 is not first crashes and takes its worker along. The next one reads the same input.
#include "threads.h"

static char got[4];

static void *body(void *argument)
{
    pthread_mutex_lock(&lock);
    CHECK(read(0, &got[(uintptr_t)argument], 1) == 1);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(void)
{
    two_threads(body);
    if (got[1] == 'b')
        *(volatile int *)8 = 1;
    CHECK(got[1] == 'a' && got[2] == 'b');
    return 0;
}
