// Mappings: the same addresses in every execution, nothing left over, and unmapped memory is gone.
#include "threads.h"
#include <sys/mman.h>

static char *early;
static char *seen[3];

static void *body(void *argument)
{
    uintptr_t me = (uintptr_t)argument;
    pthread_mutex_lock(&lock);
    char *mine = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mine != MAP_FAILED && mine[0] == 0);
    memset(mine, (int)me, 1 << 16);
    mine = mremap(mine, 1 << 16, 1 << 17, MREMAP_MAYMOVE);
    CHECK(mine != MAP_FAILED && mine[100] == (char)me && mine[1 << 16] == 0);
    CHECK(mprotect(mine, 4096, PROT_READ) == 0);
    early[me]++;
    CHECK(early[me] == 1);
    seen[me] = mine;
    pthread_mutex_unlock(&lock);
    if (me == 1)
        CHECK(munmap(mine, 1 << 17) == 0);
    return NULL;
}

int main(int count, char **arguments)
{
    (void)arguments;
    early = mmap(NULL, 1 << 14, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(early != MAP_FAILED);
    two_threads(body);
    CHECK(seen[1] != seen[2] && early[1] == 1 && early[2] == 1);
    void *top = sbrk(0);
    CHECK(sbrk(1 << 20) == (void *)-1 && sbrk(0) == top);
    CHECK(mprotect(early, 4096, PROT_READ) == 0 && early[1] == 1);
    CHECK(munmap(early, 1 << 14) == 0);
    if (count > 1)
        early[1] = 0;
    return 0;
}
