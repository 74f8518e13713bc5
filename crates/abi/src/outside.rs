//! What an operation on a file, a pipe, a socket or the like is called: `Op::arg` of the `Outside` kinds.

/// The lowest byte: what is done. The rest is one more than the descriptor, or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum What {
    Read = 0,
    Write,
    Open,
    Create,
    Remove,
    Rename,
    List,
    Ask,
    Resize,
    Seek,
    Close,
    Accept,
    Connect,
    Poll,
    Shutdown,
    Signal,
    Send,
    Wait,
    Mask,
    Signals,
}

impl What {
    pub const ALL: [(What, &'static str); 20] = [
        (What::Read, "read"),
        (What::Write, "write"),
        (What::Open, "open"),
        (What::Create, "create"),
        (What::Remove, "remove"),
        (What::Rename, "rename"),
        (What::List, "list a directory"),
        (What::Ask, "ask about a file"),
        (What::Resize, "change the size of a file"),
        (What::Seek, "move in a file"),
        (What::Close, "close"),
        (What::Accept, "accept a connection"),
        (What::Connect, "connect"),
        (What::Poll, "look what is ready"),
        (What::Shutdown, "shut down"),
        (What::Signal, "take a signal"),
        (What::Send, "send a signal"),
        (What::Wait, "wait for a signal"),
        (What::Mask, "change what is done with signals"),
        (What::Signals, "ask for pending signals"),
    ];

    /// The argument for a descriptor, or for none.
    pub const fn arg(self, fd: Option<u32>) -> u32 {
        let fd = match fd {
            Some(fd) => (fd & 0x7f_ffff) + 1,
            None => 0,
        };
        self as u32 | fd << 8
    }
}

/// What an argument says: the words, and the descriptor if it names one.
pub fn describe(arg: u32) -> (&'static str, Option<u32>) {
    let words = What::ALL.get(arg as u8 as usize).map_or("use", |(_, words)| words);
    (words, (arg >> 8).checked_sub(1))
}
