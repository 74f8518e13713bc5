// Descriptors, offsets and directories are as they were at the start of every execution. Argument: a file with "0123456789\n".
#include "threads.h"
#include <dirent.h>
#include <sys/stat.h>

static const char *path;
static int early;
static int reads;

static void *body(void *argument)
{
    char text[4] = "";
    pthread_mutex_lock(&lock);
    int own = open(path, O_RDONLY);
    CHECK(own == 4);
    CHECK(lseek(own, 5, SEEK_SET) == 5 && read(own, text, 2) == 2 && strcmp(text, "56") == 0);
    // The early descriptor is shared: each thread reads on where the other stopped.
    CHECK(read(early, text, 2) == 2 && strcmp(text, reads++ == 0 ? "23" : "45") == 0);
    CHECK(close(argument == (void *)1 ? own : 4) == 0);
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int count, char **arguments)
{
    char text[8] = "";
    struct stat status;
    CHECK(count == 2);
    path = arguments[1];
    early = open(path, O_RDONLY);
    CHECK(early == 3 && read(early, text, 2) == 2);
    FILE *log = fopen("/dev/null", "w");
    CHECK(fileno(log) == 4 && fclose(log) == 0);

    two_threads(body);

    CHECK(lseek(early, 0, SEEK_CUR) == 6);
    int copy = dup(early);
    CHECK(copy == 4 && close(early) == 0 && read(early, text, 1) == -1 && errno == EBADF);
    CHECK(open(path, O_RDONLY | O_CLOEXEC) == 3 && fcntl(3, F_GETFD) == FD_CLOEXEC);
    CHECK(dup2(3, 9) == 9 && read(9, text, 3) == 3 && memcmp(text, "012", 3) == 0);
    CHECK(pread(copy, text, 2, 8) == 2 && memcmp(text, "89", 2) == 0);
    CHECK(fstat(copy, &status) == 0 && status.st_size == 11 && stat(path, &status) == 0);
    CHECK(open("/nonexistent/file", O_RDONLY) == -1 && errno == ENOENT);
    CHECK(read(700, text, 1) == -1 && errno == EBADF && close(700) == -1);

    DIR *directory = opendir("/proc/self/task/../");
    CHECK(directory != NULL && readdir(directory) != NULL && closedir(directory) == 0);
    CHECK(write(open("/dev/null", O_WRONLY), "x", 1) == 1);
    CHECK(write(copy, "x", 1) == -1 && errno == EBADF);
    return 0;
}
