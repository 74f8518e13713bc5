// Handlers are called for signals that a thread raises; masks and dispositions are back at the start of every execution.
#include "threads.h"
#include <signal.h>

static __thread int taken;

static void handler(int signal)
{
    taken += signal;
}

static void with_information(int signal, siginfo_t *information, void *context)
{
    CHECK(information->si_signo == signal && context != NULL);
    taken += 1000;
}

static void *body(void *argument)
{
    sigset_t set, old;
    CHECK(raise(SIGUSR1) == 0 && taken == SIGUSR1);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, &old) == 0 && !sigismember(&old, SIGUSR2));
    CHECK(pthread_kill(pthread_self(), SIGUSR2) == 0 && taken == SIGUSR1);
    CHECK(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0 && taken == SIGUSR1 + 1000);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    return argument;
}

int main(int count, char **arguments)
{
    struct sigaction action = {0}, old;
    (void)arguments;
    signal(SIGUSR1, handler);
    action.sa_sigaction = with_information;
    action.sa_flags = SA_SIGINFO;
    CHECK(sigaction(SIGUSR2, &action, NULL) == 0);
    two_threads(body);
    CHECK(sigaction(SIGUSR1, NULL, &old) == 0 && old.sa_handler == handler);
    CHECK(signal(SIGUSR1, SIG_IGN) == handler && raise(SIGUSR1) == 0 && taken == 0);
    CHECK(kill(getpid(), SIGUSR2) == 0 && taken == 1000);
    CHECK(signal(SIGCHLD, SIG_DFL) == SIG_DFL && raise(SIGCHLD) == 0);
    if (count > 1)
        raise(SIGTERM);
    return 0;
}
