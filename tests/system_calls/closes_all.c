// Closes everything it can think of, before there are threads and after.
#include "threads.h"

int main(void)
{
    for (int i = 3; i < 65536; i++)
        close(i);
    two_threads(nothing);
    for (int i = 3; i < 1100; i++)
        close(i);
    CHECK(close_range(3, ~0U, 0) == 0);
    CHECK(open("/dev/null", O_RDONLY) == 3);
    CHECK(dup2(3, 1000) == 1000 || errno == EBADF);
    close(0);
    close(1);
    CHECK(open("/dev/null", O_RDONLY) == 0 && open("/dev/null", O_WRONLY) == 1);
    return 0;
}
