// Pipes, sockets and their like do as POSIX and the kernel have it. Runs alone as well: then it is the kernel.
#include "threads.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>

static int early[2];

static void pipes(void)
{
    int ends[2], waiting;
    char text[16] = "";
    CHECK(pipe2(ends, O_NONBLOCK) == 0 && read(ends[0], text, 1) == -1 && errno == EAGAIN);
    CHECK(write(ends[1], "abc", 3) == 3 && ioctl(ends[0], FIONREAD, &waiting) == 0 && waiting == 3);
    CHECK(read(ends[1], text, 1) == -1 && errno == EBADF && write(ends[0], text, 1) == -1 && errno == EBADF);
    CHECK(lseek(ends[0], 0, SEEK_SET) == -1 && errno == ESPIPE && pread(ends[0], text, 1, 0) == -1 && errno == ESPIPE);
    struct iovec parts[2] = {{text, 1}, {text + 4, 8}};
    CHECK(readv(ends[0], parts, 2) == 3 && text[0] == 'a' && strcmp(text + 4, "bc") == 0);
    CHECK(fcntl(ends[0], F_GETPIPE_SZ) == 65536);
    static char block[4096];
    int blocks = 0;
    while (write(ends[1], block, sizeof block) == sizeof block)
        blocks++;
    CHECK(errno == EAGAIN && blocks == 16);
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, 4096) == -1 && errno == EBUSY);
    CHECK(fcntl(ends[1], F_SETPIPE_SZ, 131072) == 131072 && write(ends[1], block, 5) == 5);
    for (int i = 0; i < 16; i++)
        CHECK(read(ends[0], block, sizeof block) == sizeof block);
    CHECK(read(ends[0], block, sizeof block) == 5);
    int twin = dup(ends[1]);
    CHECK(close(ends[1]) == 0 && read(ends[0], text, 1) == -1 && errno == EAGAIN);
    CHECK(close(twin) == 0 && read(ends[0], text, 1) == 0 && close(ends[0]) == 0);
    CHECK(pipe(ends) == 0 && close(ends[0]) == 0);
    signal(SIGPIPE, SIG_IGN);
    CHECK(write(ends[1], "x", 1) == -1 && errno == EPIPE && close(ends[1]) == 0 && close(ends[1]) == -1);
    struct stat status;
    CHECK(fstat(early[0], &status) == 0 && S_ISFIFO(status.st_mode));
}

static void events(void)
{
    uint64_t number = 5;
    int event = eventfd(3, EFD_NONBLOCK);
    CHECK(write(event, &number, 8) == 8 && read(event, &number, 8) == 8 && number == 8);
    CHECK(read(event, &number, 8) == -1 && errno == EAGAIN && read(event, &number, 4) == -1 && errno == EINVAL);
    CHECK(close(event) == 0);
    event = eventfd(2, EFD_SEMAPHORE);
    CHECK(read(event, &number, 8) == 8 && number == 1 && read(event, &number, 8) == 8 && close(event) == 0);
}

static void pairs(void)
{
    int ends[2];
    char text[16] = "";
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && send(ends[0], "request", 7, 0) == 7);
    CHECK(recv(ends[1], text, 3, MSG_PEEK) == 3 && recv(ends[1], text, 16, 0) == 7 && memcmp(text, "request", 7) == 0);
    CHECK(recv(ends[1], text, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(shutdown(ends[0], SHUT_WR) == 0 && read(ends[1], text, 1) == 0 && write(ends[1], "back", 4) == 4);
    CHECK(read(ends[0], text, 16) == 4 && send(ends[0], "x", 1, MSG_NOSIGNAL) == -1 && errno == EPIPE);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0 && write(ends[0], "one", 3) == 3 && write(ends[0], "two", 3) == 3);
    CHECK(read(ends[1], text, 16) == 3 && read(ends[1], text, 2) == 2 && memcmp(text, "tw", 2) == 0);
    CHECK(close(ends[0]) == 0 && read(ends[1], text, 16) == 0 && close(ends[1]) == 0);
}

static void connections(int family)
{
    struct sockaddr_storage address = {.ss_family = (sa_family_t)family}, other;
    socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    if (family == AF_INET)
        ((struct sockaddr_in *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    else
        ((struct sockaddr_in6 *)&address)->sin6_addr = in6addr_loopback;
    struct sockaddr *plain = (struct sockaddr *)&address;
    int listener = socket(family, SOCK_STREAM, 0), client = socket(family, SOCK_STREAM, 0), one = 1, error = 7;
    char text[16] = "";
    CHECK(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0 && bind(listener, plain, len) == 0);
    CHECK(getsockname(listener, plain, &len) == 0 && connect(client, plain, len) == -1 && errno == ECONNREFUSED);
    CHECK(listen(listener, 4) == 0 && read(client, text, 1) == -1 && errno == ENOTCONN && close(client) == 0);
    client = socket(family, SOCK_STREAM, 0);
    CHECK(connect(client, plain, len) == 0 && connect(client, plain, len) == -1 && errno == EISCONN);
    int server = accept4(listener, (struct sockaddr *)&other, &len, SOCK_CLOEXEC);
    CHECK(server >= 0 && write(client, "hello", 5) == 5 && recv(server, text, 5, MSG_WAITALL) == 5);
    struct sockaddr_storage name;
    len = sizeof name;
    CHECK(getsockname(client, (struct sockaddr *)&name, &len) == 0 && memcmp(&name, &other, len) == 0);
    len = sizeof error;
    CHECK(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0);
    CHECK(close(client) == 0 && read(server, text, 1) == 0 && close(server) == 0 && close(listener) == 0);
    int bad = socket(family, SOCK_STREAM, 0);
    CHECK(accept(bad, NULL, NULL) == -1 && errno == EINVAL && close(bad) == 0);
    CHECK(accept(early[0], NULL, NULL) == -1 && errno == ENOTSOCK);
}

static void datagrams(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET}, from;
    socklen_t len = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    char text[16] = "";
    CHECK(bind(a, (struct sockaddr *)&address, len) == 0 && getsockname(a, (struct sockaddr *)&address, &len) == 0);
    CHECK(bind(b, (struct sockaddr *)&address, len) == -1 && errno == EADDRINUSE && write(b, "x", 1) == -1);
    CHECK(sendto(b, "one", 3, 0, (struct sockaddr *)&address, len) == 3 && connect(b, (struct sockaddr *)&address, len) == 0);
    CHECK(send(b, "second", 6, 0) == 6 && recvfrom(a, text, 16, 0, (struct sockaddr *)&from, &len) == 3);
    CHECK(recv(a, text, 2, MSG_TRUNC) == 6 && recv(a, text, 2, MSG_DONTWAIT) == -1 && errno == EAGAIN);
    CHECK(sendto(a, "back", 4, 0, (struct sockaddr *)&from, len) == 4 && read(b, text, 16) == 4);
    CHECK(close(a) == 0 && close(b) == 0);
}

static void polls(void)
{
    int ends[2];
    char byte = 0;
    CHECK(pipe(ends) == 0);
    struct pollfd both[3] = {{ends[0], POLLIN, 0}, {ends[1], POLLOUT, 0}, {-1, POLLIN, 0}};
    CHECK(poll(both, 3, -1) == 1 && both[0].revents == 0 && both[1].revents == POLLOUT);
    CHECK(poll(both, 1, 10) == 0 && write(ends[1], &byte, 1) == 1 && poll(both, 2, 0) == 2);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval limit = {1, 0};
    CHECK(select(ends[0] + 1, &set, NULL, NULL, &limit) == 1 && FD_ISSET(ends[0], &set));
    CHECK(read(ends[0], &byte, 1) == 1 && select(ends[0] + 1, &set, NULL, NULL, &limit) == 0 && !FD_ISSET(ends[0], &set));
    CHECK(close(ends[1]) == 0 && poll(both, 2, -1) == 2 && both[0].revents == POLLHUP && both[1].revents == POLLNVAL);
    CHECK(close(ends[0]) == 0);
}

static void epolls(void)
{
    int ends[2], epoll = epoll_create1(EPOLL_CLOEXEC);
    char byte = 0;
    struct epoll_event event = {EPOLLIN, {.u64 = 77}}, found[4];
    CHECK(pipe(ends) == 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == -1 && errno == EEXIST);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[1], &event) == -1 && errno == ENOENT);
    CHECK(epoll_wait(epoll, found, 4, 0) == 0 && write(ends[1], &byte, 1) == 1);
    CHECK(epoll_wait(epoll, found, 4, -1) == 1 && found[0].data.u64 == 77 && epoll_wait(epoll, found, 4, -1) == 1);
    event.events = EPOLLIN | EPOLLET;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event) == 0 && epoll_wait(epoll, found, 4, -1) == 1);
    CHECK(epoll_wait(epoll, found, 4, 1) == 0 && write(ends[1], &byte, 1) == 1 && epoll_wait(epoll, found, 4, -1) == 1);
    event.events = EPOLLIN | EPOLLONESHOT;
    CHECK(epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event) == 0 && epoll_wait(epoll, found, 4, -1) == 1);
    CHECK(epoll_wait(epoll, found, 4, 0) == 0 && epoll_ctl(epoll, EPOLL_CTL_MOD, ends[0], &event) == 0);
    struct pollfd nested = {epoll, POLLIN, 0};
    CHECK(poll(&nested, 1, 0) == 1 && epoll_ctl(epoll, EPOLL_CTL_DEL, ends[0], NULL) == 0 && poll(&nested, 1, 0) == 0);
    CHECK(close(ends[0]) == 0 && close(ends[1]) == 0 && close(epoll) == 0);
}

static void timers(void)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec in = {{0, 0}, {0, 1000000}}, left;
    uint64_t count;
    CHECK(timerfd_settime(timer, 0, &in, NULL) == 0 && timerfd_gettime(timer, &left) == 0 && left.it_value.tv_nsec > 0);
    CHECK(read(timer, &count, 8) == 8 && count == 1);
    CHECK(timerfd_settime(timer, 0, &in, NULL) == 0);
    struct pollfd entry = {timer, POLLIN, 0};
    CHECK(poll(&entry, 1, -1) == 1 && close(timer) == 0);
}

// What one thread writes to the early pipe the other end gets in every execution.
static void *early_byte(void *argument)
{
    char byte = (char)(uintptr_t)argument;
    CHECK(write(early[1], &byte, 1) == 1);
    return NULL;
}

int main(void)
{
    char bytes[3];
    CHECK(pipe(early) == 0 && write(early[1], "e", 1) == 1);
    two_threads(early_byte);
    CHECK(read(early[0], bytes, 3) == 3 && bytes[0] == 'e' && bytes[1] + bytes[2] == 3);
    pipes();
    events();
    pairs();
    connections(AF_INET);
    connections(AF_INET6);
    datagrams();
    polls();
    epolls();
    timers();
    return 0;
}
