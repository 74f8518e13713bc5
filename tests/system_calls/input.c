// Standard input is the same in every execution, whatever number it has and however it is read. Input: "abcdefgh".
#include "threads.h"
#include <poll.h>

static char seen[9];
static int count;

static void *body(void *argument)
{
    pthread_mutex_lock(&lock);
    CHECK(read(0, seen + count, 2) == 2);
    count += 2;
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(void)
{
    CHECK(read(0, seen, 1) == 1);
    count = 1;
    two_threads(body);
    struct pollfd ready = {0, POLLIN, 0};
    CHECK(poll(&ready, 1, -1) == 1 && ready.revents == POLLIN);
    int copy = dup(0);
    CHECK(close(0) == 0 && read(0, seen, 1) == -1 && errno == EBADF);
    CHECK(read(copy, seen + count, 3) == 3 && strcmp(seen, "abcdefgh") == 0);
    CHECK(read(copy, seen, 1) == 0 && read(copy, seen, 1) == 0);
    return 0;
}
