// Does the thing that its argument names, after its threads have ended.
#include "threads.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

extern char **environ;
static int file, ends[2];

static void send_descriptor(void)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec buffer = {control, 1};
    struct msghdr message = {.msg_iov = &buffer, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(sendmsg(ends[0], &message, 0) == 1);
}

static void act(const char *what)
{
    char *arguments[] = {"true", NULL};
    char byte = 0;
    int word = 1;
    pid_t child;
#define ON(name, action)                                                                                               \
    if (strcmp(what, name) == 0) {                                                                                     \
        action;                                                                                                        \
    }
    ON("fork", CHECK(fork() == 0))
    ON("raw-fork", CHECK(syscall(SYS_fork) == 0))
    ON("raw-clone", CHECK(syscall(SYS_clone, 0x10000 | SIGCHLD, 0, 0, 0, 0) == 0))
    ON("vfork", CHECK(vfork() == 0))
    ON("system", CHECK(system("true") == 0))
    ON("popen", CHECK(popen("true", "r") != NULL))
    ON("execvp", CHECK(execvp("true", arguments) == 0))
    ON("posix_spawn", CHECK(posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ) == 0))
    struct sockaddr_in outside = {.sin_family = AF_INET, .sin_port = htons(80)};
    outside.sin_addr.s_addr = htonl(0xc0000201);
    ON("connect-outside", connect(socket(AF_INET, SOCK_DGRAM, 0), (struct sockaddr *)&outside, sizeof outside))
    ON("send-outside", sendto(socket(AF_INET, SOCK_DGRAM, 0), &byte, 1, 0, (struct sockaddr *)&outside, sizeof outside))
    ON("send-descriptor", send_descriptor())
    ON("write-system", open("/etc/new.txt", O_WRONLY | O_CREAT, 0600))
    ON("symlink", symlink("early.txt", "link.txt"))
    ON("rename-directory", rename("../", "other"); rename("/tmp", "/other"))
    ON("flock", flock(file, LOCK_EX))
    ON("alarm", CHECK(alarm(1) == 0))
    ON("kill-other", CHECK(kill(1, SIGTERM) == 0))
    ON("dispatch", CHECK(prctl(59, 0, 0, 0, 0) == 0))
    ON("set-fs", CHECK(syscall(SYS_arch_prctl, 0x1002, 0) == 0))
    ON("ioctl", CHECK(ioctl(1, 0x5402, &byte) == 0))
    ON("raw-exit", syscall(SYS_exit, 0))
    ON("unknown", syscall(7777))
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    file = open("early.txt", O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0);
    two_threads(nothing);
    act(arguments[1]);
    return 0;
}
