// Two threads read one byte each: which of them gets which is a choice. The assertion fails in one of two orders.
#include "threads.h"
#include <assert.h>

static char got[3];

static void *body(void *argument)
{
    CHECK(read(0, &got[(uintptr_t)argument], 1) == 1);
    return NULL;
}

int main(void)
{
    two_threads(body);
    assert(got[1] == 'a');
    return 0;
}
