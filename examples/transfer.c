// Two threads move money between two accounts, each with a lock of its own, always taken in the same order.
#include <assert.h>
#include <pthread.h>

struct account {
    pthread_mutex_t lock;
    int balance;
};

static struct account a = {PTHREAD_MUTEX_INITIALIZER, 100};
static struct account b = {PTHREAD_MUTEX_INITIALIZER, 100};

static void transfer(struct account *from, struct account *to, int amount) {
    struct account *first = from < to ? from : to;
    struct account *second = from < to ? to : from;
    pthread_mutex_lock(&first->lock);
    pthread_mutex_lock(&second->lock);
    from->balance -= amount;
    to->balance += amount;
    pthread_mutex_unlock(&second->lock);
    pthread_mutex_unlock(&first->lock);
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
