//! Functions of the thread API, and others that wait or make processes, that are not handled yet: each ends the run with
//! its own name, rather than hang in libc or show up under the name of some system call inside it.
//!
//! Only calls count: code that merely refers to one of these is not affected. Making and destroying objects stays
//! libc's, since that neither waits nor orders anything; using them is refused.

use crate::end::unsupported;
use crate::syscalls::{self, errno};
use crate::threads::number_of;

fn refuse(name: &str) -> ! {
    unsupported(format_args!("the program calls {name}(), which symdpor cannot control yet"))
}

fn refuse_timed(name: &str) -> ! {
    unsupported(format_args!("the program calls {name}(); waiting with a time limit is not supported yet"))
}

/// `stack`: as it was when the program made the call.
fn refuse_process(name: &str, stack: usize) -> ! {
    if let Some(place) = crate::whereabouts::calling_library(stack) {
        unsupported(format_args!(
            "the library {} calls {name}(); processes and threads that symdpor did not make are not supported",
            place.library
        ));
    }
    unsupported(format_args!(
        "the program calls {name}(); only the threads of one process are supported, not several processes"
    ))
}

fn refuse_signal(name: &str) -> ! {
    unsupported(format_args!(
        "the program calls {name}(); signals from outside and timers that send them are not supported"
    ))
}

macro_rules! refused {
    // With where the return address is: what the runtime's own functions leave behind on the stack may look like one.
    ($how:ident with stack: $($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            extern "C" fn $name() -> ! {
                extern "C" fn refuse(stack: usize) -> ! {
                    crate::init::ensure();
                    $how(stringify!($name), stack)
                }
                core::arch::naked_asm!("mov rdi, rsp", "jmp {refuse}", refuse = sym refuse)
            }
        )*
    };
    ($how:ident: $($name:ident)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name() -> ! {
                crate::init::ensure();
                $how(stringify!($name))
            }
        )*
    };
}

refused! { refuse:
    pthread_mutex_setprioceiling
    mq_open mq_close mq_unlink mq_send mq_receive mq_notify mq_getattr mq_setattr
    aio_read aio_write aio_fsync aio_error aio_return aio_cancel aio_suspend lio_listio
    aio_read64 aio_write64 aio_fsync64 aio_error64 aio_return64 aio_cancel64 aio_suspend64 lio_listio64
    getaddrinfo_a
}

refused! { refuse_timed:
    mq_timedsend mq_timedreceive
}

refused! { refuse_process with stack:
    fork _Fork vfork __fork __vfork __libc_fork forkpty daemon posix_spawn posix_spawnp clone
    execl execle execlp execv execve execvp execvpe execveat fexecve
}

refused! { refuse_signal:
    sigpause
    timer_create timer_settime timer_gettime timer_getoverrun timer_delete ualarm
}

/// libc would write the name of another thread to a file of the kernel's.
#[unsafe(no_mangle)]
extern "C" fn pthread_setname_np(thread: usize, name: *const core::ffi::c_char) -> i32 {
    // SAFETY: the caller passed a string.
    let bytes = unsafe { core::ffi::CStr::from_ptr(name) }.to_bytes();
    let mut kept = [0; syscalls::NAME_BYTES];
    if bytes.len() >= kept.len() {
        return -errno::ERANGE as i32;
    }
    kept[..bytes.len()].copy_from_slice(bytes);
    if let Some(number) = number_of(thread) {
        syscalls::set_name(number as usize, kept);
    }
    0
}

#[unsafe(no_mangle)]
extern "C" fn pthread_getname_np(thread: usize, buffer: *mut u8, len: usize) -> i32 {
    let name = number_of(thread).map_or([0; syscalls::NAME_BYTES], |number| syscalls::get_name(number as usize));
    let used = name.iter().position(|&b| b == 0).unwrap_or(name.len() - 1) + 1;
    if len < used {
        return -errno::ERANGE as i32;
    }
    // SAFETY: the caller passed a buffer of `len` bytes.
    unsafe { core::ptr::copy_nonoverlapping(name.as_ptr(), buffer, used) };
    0
}
