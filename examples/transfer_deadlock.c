// Two threads move money between two accounts, each with a lock of its own: the one they take from is locked first.
#include <assert.h>
#include <pthread.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account a = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(struct account *from, struct account *to, int amount) {
    pthread_mutex_lock(&from->lock);
    pthread_mutex_lock(&to->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&to->lock);
    pthread_mutex_unlock(&from->lock);
}

static void *there(void *unused) {
    transfer(&a, &b, 10);
    return unused;
}

static void *back(void *unused) {
    transfer(&b, &a, 30);
    return unused;
}

int main(void) {
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, there, NULL);
    pthread_create(&threads[1], NULL, back, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert(a.balance + b.balance == 200);
    return 0;
}
