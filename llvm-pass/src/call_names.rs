//! What a call is about: the lock that is taken, the semaphore that is posted, the object of the C++ library whose function
//! is called. Reports name it as the source does.

use crate::ir::{Module, Value};
use crate::names::{self, Named};

/// Functions of C whose first argument is what they synchronise on, by the beginnings of their names.
const SYNCHRONISING: [&str; 13] = [
    "pthread_mutex_",
    "pthread_cond_",
    "pthread_rwlock_",
    "pthread_spin_",
    "pthread_barrier_",
    "pthread_once",
    "sem_",
    "mtx_",
    "cnd_",
    "call_once",
    "flockfile",
    "funlockfile",
    "ftrylockfile",
];

/// Members of the C++ library's classes, as their mangled names begin.
const LIBRARY: [&str; 2] = ["_ZNSt", "_ZNKSt"];

/// Classes that hold a lock for as long as they live. They get it as the first argument of their constructor; their other
/// functions say nothing of what it is.
const GUARDS: [&str; 4] = ["10lock_guardI", "11unique_lockI", "11scoped_lockI", "11shared_lockI"];

/// The name of what a call is about, if it is one of those.
pub fn of_call(module: Module, call: Value) -> Option<Named> {
    let symbol = call.called_function()?.name();
    let argument = argument(&symbol)?;
    let address = call.call_arguments().into_iter().nth(argument).filter(|a| a.ty().is_pointer())?;
    // What is behind a pointer to the whole object has the object's name.
    names::name_of(module, address, 0).map(|named| Named { code: String::new(), ..named })
}

/// Which argument it is.
fn argument(symbol: &str) -> Option<usize> {
    if SYNCHRONISING.iter().any(|prefix| symbol.starts_with(prefix)) {
        return Some(0);
    }
    let rest = LIBRARY.iter().find_map(|prefix| symbol.strip_prefix(prefix))?;
    if GUARDS.iter().any(|guard| rest.starts_with(guard)) {
        let constructs = rest.contains("EC1E") || rest.contains("EC2E");
        return constructs.then_some(1);
    }
    Some(0)
}

#[cfg(test)]
mod tests {
    use super::argument;

    #[test]
    fn the_argument_that_matters() {
        assert_eq!(argument("pthread_mutex_lock"), Some(0));
        assert_eq!(argument("_ZNSt10lock_guardISt5mutexEC2ERS0_"), Some(1));
        assert_eq!(argument("_ZNSt10lock_guardISt5mutexED2Ev"), None);
        assert_eq!(argument("_ZNSt13__atomic_baseIiEppEi"), Some(0));
        assert_eq!(argument("printf"), None);
    }
}
