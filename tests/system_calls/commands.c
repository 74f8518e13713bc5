// Commands that are run before there are threads.
#include "threads.h"
#include <sys/wait.h>

static char line[64];

int main(int count, char **arguments)
{
    (void)arguments;
    FILE *command = popen("echo $LD_PRELOAD hello; exit 3", "r");
    CHECK(command != NULL && fgets(line, sizeof line, command) != NULL && strcmp(line, "hello\n") == 0);
    if (count == 1)
        CHECK(WEXITSTATUS(pclose(command)) == 3);
    CHECK(WEXITSTATUS(system("exit 4")) == 4 && system(NULL) != 0);
    two_threads(nothing);
    return 0;
}
