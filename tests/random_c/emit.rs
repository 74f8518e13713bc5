//! Programs as C: many in one file, chosen by the first argument, so that compiling them costs little.

use crate::program::*;
use std::collections::HashMap;
use std::fmt::Write;

const PRELUDE: &str = r"#include <assert.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static atomic_int A[3];
static int P[2];
static pthread_mutex_t M[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static pthread_cond_t C = PTHREAD_COND_INITIALIZER;
static sem_t S;
static pthread_rwlock_t W = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t B;
static pthread_t T[4];
static unsigned R[4];
static _Thread_local int L;
struct block { int zero, more[3]; };

__attribute__((noinline)) static void give_way(void)
{
    sched_yield();
    sched_yield();
}

static const struct timespec *soon(void)
{
    static _Thread_local struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_sec++;
    return &time;
}

";

/// A file of programs, and where their assertions are: line to (thread, instruction).
pub struct Batch {
    pub text: String,
    pub assertions: HashMap<u32, (usize, usize)>,
    line: u32,
}

pub fn batch(programs: &[Program]) -> Batch {
    let mut batch = Batch { text: String::new(), assertions: HashMap::new(), line: 1 };
    batch.line(PRELUDE.trim_end_matches('\n'));
    for (number, program) in programs.iter().enumerate() {
        for (thread, code) in program.threads.iter().enumerate().rev() {
            batch.thread(number, thread, code, program.twins);
        }
    }
    batch.line("int main(int argc, char **argv)\n{\n    sem_init(&S, 0, 0);\n    pthread_barrier_init(&B, NULL, 2);\n    switch (argc > 1 ? atoi(argv[1]) : -1) {");
    for number in 0..programs.len() {
        batch.line(&format!("    case {number}: program_{number}_0(NULL); break;"));
    }
    batch.line("    }\n    return 0;\n}");
    batch
}

impl Batch {
    fn line(&mut self, text: &str) {
        self.line += 1 + text.matches('\n').count() as u32;
        writeln!(self.text, "{text}").expect("strings take everything");
    }

    fn thread(&mut self, program: usize, thread: usize, code: &[Instruction], twins: Option<Given>) {
        self.line(&format!("static void *program_{program}_{thread}(void *unused)\n{{"));
        self.line("    int r[2] = {0, 0}, expected = 0, old = 0, besides = 0, previous = 0;\n    unsigned h = 0;");
        self.line("    (void)r; (void)expected; (void)old; (void)besides; (void)previous; (void)h;");
        self.line(take_given(thread, twins));
        for (at, instruction) in code.iter().enumerate() {
            if matches!(instruction, Instruction::Assert { .. }) {
                self.assertions.insert(self.line, (thread, at));
            }
            self.line(&format!("l{at}: __attribute__((unused)); {}", statement(*instruction, program, thread, twins)));
        }
        self.line(&format!("l{}: __attribute__((unused));\n    return unused;\n}}\n", code.len()));
    }
}

fn order(order: Order, weak: &str) -> String {
    match order {
        Order::Relaxed => "memory_order_relaxed".to_owned(),
        Order::Weak => format!("memory_order_{weak}"),
        Order::Strong => "memory_order_seq_cst".to_owned(),
    }
}

/// What a thread does with what it was given: all of it comes to 0.
fn take_given(thread: usize, twins: Option<Given>) -> &'static str {
    match twins {
        Some(Given::Number) if thread > 0 => "    r[0] = (int)(long)unused % 7; r[0] = 0;",
        Some(Given::Block) if thread > 0 => "    struct block *block = unused; r[0] = block->zero;",
        Some(Given::ThreadLocal) => "    L = 3; r[0] = L - 3;",
        _ => "",
    }
}

fn argument(thread: usize, twins: Option<Given>) -> String {
    match twins {
        Some(Given::Number) => format!("(void *){}L", thread + 10),
        Some(Given::Block) => "calloc(1, sizeof(struct block))".to_owned(),
        _ => "NULL".to_owned(),
    }
}

fn statement(instruction: Instruction, program: usize, thread: usize, twins: Option<Given>) -> String {
    match instruction {
        Instruction::Load { register, variable, order: o } => {
            format!("r[{register}] = atomic_load_explicit(&A[{variable}], {});", order(o, "acquire"))
        }
        Instruction::Store { variable, register, value, order: o } => {
            format!("atomic_store_explicit(&A[{variable}], r[{register}] + {value}, {});", order(o, "release"))
        }
        Instruction::Add { register, variable, value, order: o } => {
            format!("r[{register}] = atomic_fetch_add_explicit(&A[{variable}], {value}, {});", order(o, "acq_rel"))
        }
        Instruction::GiveWay(how) => WAYS_TO_GIVE_WAY[how].to_owned(),
        Instruction::Fence => "atomic_thread_fence(memory_order_acq_rel);".to_owned(),
        Instruction::CompareExchange { register, variable, expected, new } => format!(
            "expected = {expected}; r[{register}] = atomic_compare_exchange_strong(&A[{variable}], &expected, {new});"
        ),
        Instruction::CompareAdd { register, variable, value } => format!(
            "expected = r[{register}]; \
             r[{register}] = atomic_compare_exchange_strong(&A[{variable}], &expected, expected + {value});"
        ),
        Instruction::LoadKept { variable, order: o, besides } => {
            let first = if besides == Besides::First { "old" } else { "0" };
            format!("old = atomic_load_explicit(&A[{variable}], {}); besides = {first};", order(o, "acquire"))
        }
        Instruction::AddToKept { register, variable, value, besides } => {
            let (before, failed) = match besides {
                Besides::Nothing | Besides::First => ("", ""),
                Besides::Failures => ("", "besides++;"),
                Besides::Failed => ("", "besides = 1;"),
                Besides::Previous => ("previous = old, ", "besides = previous;"),
            };
            format!(
                "while ({before}!atomic_compare_exchange_strong(&A[{variable}], &old, old + {value})) {{ {failed} }} \
                 r[{register}] = old; r[{}] = besides;",
                1 - register
            )
        }
        Instruction::Lock(m) => format!("pthread_mutex_lock(&M[{m}]);"),
        Instruction::Unlock(m) => format!("pthread_mutex_unlock(&M[{m}]);"),
        Instruction::TryLock { mutex, if_taken } => {
            format!("if (pthread_mutex_trylock(&M[{mutex}])) goto l{if_taken};")
        }
        Instruction::LockWithin { mutex, if_late } => {
            format!("if (pthread_mutex_timedlock(&M[{mutex}], soon())) goto l{if_late};")
        }
        Instruction::Wait => "pthread_cond_wait(&C, &M[0]);".to_owned(),
        Instruction::WaitWithin { register } => {
            format!("r[{register}] = pthread_cond_timedwait(&C, &M[0], soon()) != 0;")
        }
        Instruction::Post => "sem_post(&S);".to_owned(),
        Instruction::Take => "sem_wait(&S);".to_owned(),
        Instruction::TryTake { if_none } => format!("if (sem_trywait(&S)) goto l{if_none};"),
        Instruction::TakeWithin { if_late } => format!("if (sem_timedwait(&S, soon())) goto l{if_late};"),
        Instruction::ReadLock => "pthread_rwlock_rdlock(&W);".to_owned(),
        Instruction::WriteLock => "pthread_rwlock_wrlock(&W);".to_owned(),
        Instruction::TryReadLock { if_taken } => format!("if (pthread_rwlock_tryrdlock(&W)) goto l{if_taken};"),
        Instruction::TryWriteLock { if_taken } => format!("if (pthread_rwlock_trywrlock(&W)) goto l{if_taken};"),
        Instruction::RwUnlock => "pthread_rwlock_unlock(&W);".to_owned(),
        Instruction::Barrier => "pthread_barrier_wait(&B);".to_owned(),
        Instruction::Signal => "pthread_cond_signal(&C);".to_owned(),
        Instruction::Broadcast => "pthread_cond_broadcast(&C);".to_owned(),
        Instruction::PlainLoad { register, variable } => format!("r[{register}] = P[{variable}];"),
        Instruction::PlainStore { variable, value } => format!("P[{variable}] = {value};"),
        Instruction::JumpUnless { register, value, target } => format!("if (r[{register}] != {value}) goto l{target};"),
        Instruction::Jump(target) => format!("goto l{target};"),
        Instruction::Assert { register, forbidden } => format!("assert(r[{register}] != {forbidden});"),
        Instruction::Create(t) => {
            format!("pthread_create(&T[{t}], NULL, program_{program}_{t}, {});", argument(t, twins))
        }
        Instruction::Join(t) => format!("pthread_join(T[{t}], NULL);"),
        Instruction::Fold(t) => format!("h = h * 5 + R[{t}];"),
        Instruction::FoldVariable(variable) => format!("h = h * 5 + (unsigned)atomic_load(&A[{variable}]);"),
        Instruction::Exit(status) => format!("exit({status});"),
        Instruction::ExitHash => "exit(1 + h % 97);".to_owned(),
        Instruction::Return if twins == Some(Given::Block) => {
            "r[1] = block->zero; free(block); return NULL;".to_owned()
        }
        Instruction::Return if twins.is_some() => "return NULL;".to_owned(),
        Instruction::Return => format!("R[{thread}] = (unsigned)r[0] * 7 + (unsigned)r[1] * 13; return unused;"),
    }
}

/// One program of a batch, to be read by a person.
pub fn listing(program: &Program, number: usize) -> String {
    let mut batch = Batch { text: String::new(), assertions: HashMap::new(), line: 1 };
    for (thread, code) in program.threads.iter().enumerate().rev() {
        batch.thread(number, thread, code, program.twins);
    }
    batch.text
}
