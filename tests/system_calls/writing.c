// Files that are written: each execution finds what the first one found. Runs alone as well: then the kernel does it.
// There are files old.txt ("old contents") and other.txt ("other").
#include "threads.h"
#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

static int early, twin;

static long size(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (long)status.st_size : -1;
}

static int listed(const char *directory, const char *name)
{
    int count = 0;
    DIR *stream = opendir(directory);
    CHECK(stream != NULL);
    for (struct dirent *entry; (entry = readdir(stream)) != NULL;)
        count += strcmp(entry->d_name, name) == 0;
    CHECK(closedir(stream) == 0);
    return count;
}

static void text_is(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "r");
    CHECK(file != NULL);
    size_t got = fread(text, 1, sizeof text - 1, file);
    CHECK(got == strlen(expected) && strcmp(text, expected) == 0);
    fclose(file);
}

static void *append(void *argument)
{
    char line[2] = {(char)('0' + (uintptr_t)argument), '\n'};
    int log = open("log.txt", O_WRONLY | O_CREAT | O_APPEND, 0644);
    CHECK(log >= 0 && write(log, line, 2) == 2 && close(log) == 0);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void created(void)
{
    struct stat status;
    CHECK(size("log.txt") == 4 && listed(".", "log.txt") == 1);
    CHECK(open("log.txt", O_CREAT | O_EXCL | O_WRONLY, 0600) == -1 && errno == EEXIST);
    CHECK(open("none/new.txt", O_CREAT | O_WRONLY, 0600) == -1 && errno == ENOENT);
    CHECK(open("none.txt", O_RDWR) == -1 && errno == ENOENT);
    CHECK(stat("log.txt", &status) == 0 && S_ISREG(status.st_mode) && status.st_nlink == 1);
    CHECK(access("log.txt", R_OK | W_OK) == 0 && access("log.txt", X_OK) == -1 && errno == EACCES);
    CHECK(readlink("log.txt", (char[8]){0}, 8) == -1 && errno == EINVAL);
    int fd = open("./log.txt", O_RDWR | O_TRUNC);
    CHECK(fd >= 0 && size("log.txt") == 0 && write(fd, "abcdef", 6) == 6);
    CHECK(pwrite(fd, "XY", 2, 1) == 2 && lseek(fd, 0, SEEK_CUR) == 6 && lseek(fd, -2, SEEK_END) == 4);
    char text[8] = "";
    CHECK(pread(fd, text, 6, 0) == 6 && strcmp(text, "aXYdef") == 0);
    CHECK(ftruncate(fd, 3) == 0 && size("log.txt") == 3 && truncate("log.txt", 5) == 0 && size("log.txt") == 5);
    struct iovec parts[2] = {{"12", 2}, {"345", 3}};
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && writev(fd, parts, 2) == 5);
    CHECK(close(fd) == 0);
    text_is("log.txt", "12345");
    CHECK(read(fd, text, 1) == -1 && errno == EBADF);
}

static void renamed(void)
{
    CHECK(rename("log.txt", "new.txt") == 0 && size("log.txt") == -1 && size("new.txt") == 5);
    CHECK(rename("log.txt", "x.txt") == -1 && errno == ENOENT);
    CHECK(rename("old.txt", "new.txt") == 0 && size("old.txt") == -1);
    text_is("new.txt", "old contents");
    CHECK(listed(".", "old.txt") == 0 && listed(".", "new.txt") == 1);
    CHECK(link("new.txt", "second.txt") == 0 && unlink("new.txt") == 0);
    text_is("second.txt", "old contents");
    CHECK(unlink("none.txt") == -1 && errno == ENOENT && unlink("second.txt") == 0);
    CHECK(unlink("other.txt") == 0 && size("other.txt") == -1 && fopen("other.txt", "r") == NULL);
    FILE *again = fopen("other.txt", "w");
    CHECK(again != NULL && fprintf(again, "%d\n", 42) == 3 && fclose(again) == 0);
    text_is("other.txt", "42\n");
}

static void directories(void)
{
    CHECK(mkdir("d", 0700) == 0 && mkdir("d", 0700) == -1 && errno == EEXIST);
    CHECK(mkdir("d/e", 0700) == 0 && rmdir("d") == -1 && errno == ENOTEMPTY);
    FILE *file = fopen("d/e/../x", "w");
    CHECK(file != NULL && fputs("x", file) >= 0 && fclose(file) == 0);
    CHECK(size("d/x") == 1 && listed("d", "x") == 1 && listed("d", "e") == 1 && listed("d", "y") == 0);
    int fd = open("d", O_RDONLY | O_DIRECTORY);
    CHECK(fd >= 0 && unlinkat(fd, "x", 0) == 0 && faccessat(fd, "x", F_OK, 0) == -1 && close(fd) == 0);
    CHECK(unlink("d") == -1 && errno == EISDIR && rmdir("d/e") == 0 && rmdir("d") == 0 && size("d") == -1);
}

static void mapped(void)
{
    char name[] = "tmp-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
    char *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(shared != MAP_FAILED);
    strcpy(shared + 4096, "through memory");
    char text[16] = "";
    CHECK(pread(fd, text, 15, 4096) == 15 && strcmp(text, "through memory") == 0);
    CHECK(munmap(shared, 8192) == 0 && close(fd) == 0 && unlink(name) == 0);
    FILE *temporary = tmpfile();
    CHECK(temporary != NULL && fputs("abc", temporary) >= 0 && fseek(temporary, 1, SEEK_SET) == 0);
    CHECK(fgetc(temporary) == 'b' && fclose(temporary) == 0);
}

// Opened before the first thread, written to after it; a duplicate shares the offset, another open file does not.
static void opened_early(void)
{
    char text[16] = "";
    int own = open("early.txt", O_RDONLY);
    CHECK(own >= 0 && read(own, text, 2) == 2);
    CHECK(write(early, "more\n", 5) == 5 && lseek(twin, 0, SEEK_CUR) == 11);
    CHECK(read(own, text, 15) == 9 && memcmp(text, "art\nmore\n", 9) == 0 && close(own) == 0);
    CHECK(lseek(early, 0, SEEK_SET) == 0 && read(twin, text, 6) == 6 && memcmp(text, "start\n", 6) == 0);
    CHECK(size("early.txt") == 11);
}

int main(void)
{
    early = open("early.txt", O_RDWR | O_CREAT | O_TRUNC, 0644);
    CHECK(early >= 0 && write(early, "start\n", 6) == 6);
    twin = dup(early);
    two_threads(append);
    created();
    renamed();
    directories();
    mapped();
    opened_early();
    return 0;
}
