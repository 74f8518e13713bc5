//! Every system call of the program, and what becomes of it.
//!
//! Syscall user dispatch sends each one here, libc's internal ones too. [`policy`] says for each: answered without the
//! kernel, made for real, carried out by one of the modules below, or refused by name. Until the snapshot is taken the
//! program's sequential start runs once and most things simply happen. Afterwards nothing may remain of an execution
//! but what [`undo`] puts back: a call whose effect cannot be undone ends the run with its name.
//!
//! Invariants:
//! - The kernel's state after [`undo`] is what it was at [`snapshot_taken`]: mappings, descriptors, offsets.
//! - [`State`] is restored with the program's memory; the statics of these modules are not, and are undone by hand.
//! - No answer depends on the process, the machine's clock or a random device, so that workers agree.
//! - Only memory that the program passed is written, and only after [`crate::snapshot::make_writable`].
//!
//! What is done to files ([`overlay`]) and to pipes, sockets and their like ([`channels`]) are operations of the search
//! ([`turn`]), whoever makes the call.
//!
//! Not covered: the order in which threads read the clock, or get descriptors, is not a scheduling choice.

mod alias;
mod channels;
mod descriptors;
pub mod errno;
mod fcntl;
mod files;
mod futex;
mod input_log;
mod kernel;
mod memory;
pub mod names;
mod old_mappings;
mod openat;
mod overlay;
mod pending;
mod policy;
mod poll;
mod process;
pub mod random;
mod refusal;
mod signal_waits;
pub mod signals;
mod stdin;
pub mod threads;
pub mod time;
pub mod turn;
mod world;

pub use channels::{lonely, silent};
pub use descriptors::shared;
pub use names::{name, nr};
pub use process::{NAME_BYTES, get_name, given_name, set_name};
pub use signals::program_handles;

/// The arguments of a system call, as they were in the registers.
pub type Args = [usize; 6];

/// What of the system calls' state belongs to one execution, and is restored with the program's memory.
pub struct State {
    memory: memory::State,
    stdin: stdin::Position,
    signals: signals::State,
    clock: time::Clock,
    random: random::Generator,
    /// The step at which a thread last looked for something in vain, or 0.
    in_vain: u32,
    umask: Option<u32>,
}

impl State {
    pub const fn new() -> State {
        State {
            memory: memory::State::new(),
            stdin: stdin::Position::new(),
            signals: signals::State::new(),
            clock: time::Clock::new(),
            random: random::Generator::new(),
            in_vain: 0,
            umask: None,
        }
    }
}

fn state() -> &'static mut State {
    // Interposed functions may be called before the runtime's constructor.
    crate::init::ensure();
    &mut crate::exec::get().syscalls
}

/// What the runtime keeps of a thread that the thread can ask for: which signals it blocks, and its name.
pub fn of_thread(thread: usize) -> [u64; 3] {
    let [low, high] = process::name_words(thread);
    [signals::mask_of(thread), low, high]
}

/// What the descriptor stands for is to be found out: libc has opened or closed it by itself.
pub fn forget_descriptor(fd: i32) {
    if let Ok(fd) = usize::try_from(fd) {
        descriptors::closed(fd);
    }
}

/// Carries out a system call of the program. Returns what the kernel would: a value, or -errno.
pub fn emulate(number: usize, args: Args) -> isize {
    use policy::Rule;
    crate::exec::me().parts = 0;
    let result = match policy::rule(number) {
        Rule::Answer(value) => value,
        Rule::Pass(outputs) => kernel::pass(number, args, outputs),
        Rule::Do(function) => function(number, args),
        Rule::Start(reason) if crate::snapshot::is_taken() => refusal::refuse(number, args, reason),
        Rule::Start(_) => kernel::real(number, args),
        Rule::Never(reason) => refusal::refuse(number, args, reason),
    };
    if crate::snapshot::is_taken() {
        // A descriptor, say.
        crate::footprint::learnt(result as usize);
    }
    result
}

/// Records what must be known to undo an execution. Called once, just before the snapshot is taken.
pub fn snapshot_taken() {
    descriptors::snapshot_taken();
    overlay::origin::snapshot_taken();
    memory::snapshot_taken();
}

/// Puts the kernel's side back to where it was when the snapshot was taken. Called before memory is restored.
pub fn undo() {
    channels::undo();
    memory::undo();
    descriptors::undo();
    signals::undo();
    threads::undo();
}
