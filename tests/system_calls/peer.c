// A server in another process, at the port that is the first argument: it answers each byte with the next letter, says
// "done" to whoever says nothing more, and nothing at all to a question mark.
#include "threads.h"
#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>

static struct sockaddr_in server;
static const char *what;
static int shared, finished;

static int dial(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    int result = connect(fd, (struct sockaddr *)&server, sizeof server);
    CHECK(result == 0 || (flags && errno == EINPROGRESS));
    return fd;
}

static char ask(int fd, char byte)
{
    CHECK(write(fd, &byte, 1) == 1 && read(fd, &byte, 1) == 1);
    return byte;
}

static void *talk(void *argument)
{
    char first = 'a' + 10 * ((uintptr_t)argument - 1), text[8];
    if (strcmp(what, "silent") == 0) {
        ask(dial(0), '?');
    } else if (strcmp(what, "shared") == 0) {
        CHECK(write(shared, &first, 1) == 1);
    } else if (strcmp(what, "poll") == 0) {
        int fd = dial(SOCK_NONBLOCK);
        struct pollfd entry = {.fd = fd, .events = POLLOUT};
        CHECK(poll(&entry, 1, -1) == 1 && entry.revents == POLLOUT);
        CHECK(read(fd, text, 1) == -1 && errno == EAGAIN);
        CHECK(write(fd, &first, 1) == 1);
        entry.events = POLLIN;
        CHECK(poll(&entry, 1, -1) == 1 && read(fd, text, 8) == 1 && text[0] == first + 1);
        close(fd);
    } else {
        int fd = dial(0);
        CHECK(ask(fd, first) == first + 1 && ask(fd, first + 1) == first + 2);
        CHECK(shutdown(fd, SHUT_WR) == 0 && recv(fd, text, 4, MSG_WAITALL) == 4 && memcmp(text, "done", 4) == 0);
        CHECK(read(fd, text, 1) == 0 && close(fd) == 0);
    }
    pthread_mutex_lock(&lock);
    finished++;
    pthread_mutex_unlock(&lock);
    return nothing(NULL);
}

int main(int count, char **arguments)
{
    CHECK(count == 3);
    what = arguments[2];
    server.sin_family = AF_INET;
    server.sin_port = htons(atoi(arguments[1]));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    // One that is made before there are threads goes on afterwards.
    shared = dial(0);
    CHECK(ask(shared, 'x') == 'y');
    two_threads(talk);
    char text[2];
    if (strcmp(what, "shared") == 0) {
        CHECK(recv(shared, text, 2, MSG_WAITALL) == 2);
        return text[0] == 'l';
    }
    return finished != 2;
}
