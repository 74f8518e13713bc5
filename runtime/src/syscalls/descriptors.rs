//! The program's descriptors: what each one stands for, and how to get the table back as it was.
//!
//! The kernel's own table holds the truth, so numbers are given out exactly as always. Beside it stands what the kernel
//! cannot know: that a descriptor means the program's standard input or output, under whatever number it was duplicated
//! to. A descriptor from before the snapshot that is closed or replaced is first duplicated to a high number that the
//! program cannot see; [`undo`] duplicates it back. The duplicate shares offset and flags, so nothing is lost.
//!
//! Not covered: after the snapshot, descriptors of [`LIMIT`] and above; flags of an open file (`F_SETFL`).

use super::errno::{EBADF, EMFILE};
use super::kernel::real;
use super::names::nr;
use super::{input_log, refusal};
use crate::cell::Global;
use crate::snapshot::is_taken;

/// Descriptors below this number are kept track of.
pub const LIMIT: usize = 1024;
/// Duplicates that the program must not see have numbers from here on.
const FIRST_HIDDEN: usize = 512;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Not looked at yet, or not open.
    Unknown = 0,
    Stdin,
    Stdout,
    Stderr,
    Regular,
    Directory,
    /// `/dev/null` and its like: no state that an execution could change.
    Sink,
    Terminal,
    /// A random device: answered by the seeded generator.
    Random,
    /// A pipe, a socket, any other device.
    Other,
    /// A pipe, a socket or the like that the runtime keeps: see `channels`.
    Channel,
}

/// What a descriptor was when the snapshot was taken.
#[derive(Clone, Copy)]
struct Saved {
    open: bool,
    close_on_exec: bool,
    kind: Kind,
    /// A hidden duplicate, or 0 while there is none.
    backup: u16,
    /// Where it stood, if it can be moved.
    offset: Option<usize>,
}

/// A set of descriptors.
#[derive(Clone, Copy)]
pub struct Bits([u64; LIMIT / 64]);

impl Bits {
    const fn new() -> Bits {
        Bits([0; LIMIT / 64])
    }

    fn has(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 != 0
    }

    fn insert(&mut self, index: usize) {
        self.0[index / 64] |= 1 << (index % 64);
    }

    pub fn remove(&mut self, index: usize) {
        self.0[index / 64] &= !(1 << (index % 64));
    }

    fn union(mut self, other: Bits) -> Bits {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word |= other);
        self
    }

    /// Removes the lowest member and returns it.
    pub fn pop(&mut self) -> Option<usize> {
        let word = self.0.iter().position(|&w| w != 0)?;
        let bit = self.0[word].trailing_zeros() as usize;
        self.0[word] &= self.0[word] - 1;
        Some(word * 64 + bit)
    }
}

struct Table {
    kinds: [Kind; LIMIT],
    saved: [Saved; LIMIT],
    /// Open when the snapshot was taken.
    at_start: Bits,
    /// Of those, the ones whose offset can be moved.
    movable: Bits,
    /// Duplicates that the program must not see.
    hidden: Bits,
    /// Opened, closed or replaced in this execution.
    touched: Bits,
    /// Hidden ones that belong to the running execution.
    passing: Bits,
    /// Some offset may have been moved in this execution.
    moved: bool,
}

static TABLE: Global<Table> = Global::new(Table {
    kinds: {
        let mut kinds = [Kind::Unknown; LIMIT];
        kinds[0] = Kind::Stdin;
        kinds[1] = Kind::Stdout;
        kinds[2] = Kind::Stderr;
        kinds
    },
    saved: [Saved { open: false, close_on_exec: false, kind: Kind::Unknown, backup: 0, offset: None }; LIMIT],
    at_start: Bits::new(),
    movable: Bits::new(),
    hidden: Bits::new(),
    touched: Bits::new(),
    passing: Bits::new(),
    moved: false,
});

/// Whether a descriptor is the runtime's: the program can neither use nor close it.
pub fn is_hidden(fd: usize) -> bool {
    let controllers = fd > 2 && (fd == crate::init::channel_fd() || Some(fd) == input_log::given());
    controllers || (fd < LIMIT && TABLE.get().hidden.has(fd))
}

/// The descriptor in an argument: the kernel looks at the lower 32 bits only.
pub fn number(argument: usize) -> usize {
    argument as u32 as usize
}

pub fn is_open(fd: usize) -> bool {
    const F_GETFD: usize = 1;
    !is_hidden(fd) && real(nr::fcntl, [fd, F_GETFD, 0, 0, 0, 0]) >= 0
}

/// The program's descriptors of a file, in ascending order, after the snapshot: whatever is open was so then, or has been
/// opened since.
pub fn of_file(file: &Stat) -> Bits {
    let table = TABLE.get();
    let mut candidates = table.at_start.union(table.touched);
    let mut found = Bits::new();
    while let Some(fd) = candidates.pop() {
        if !is_hidden(fd) && stat_of(fd).is_ok_and(|s| (s.device, s.inode) == (file.device, file.inode)) {
            found.insert(fd);
        }
    }
    found
}

/// What the descriptor stands for, or EBADF.
pub fn kind(fd: usize) -> Result<Kind, isize> {
    if is_hidden(fd) {
        return Err(EBADF);
    }
    let Some(known) = TABLE.get().kinds.get_mut(fd) else { return kind_of_high(fd) };
    if *known == Kind::Unknown {
        *known = classify(fd)?;
    }
    Ok(*known)
}

/// A descriptor that is not kept track of. After the snapshot no new ones are made, and old ones cannot be put back.
fn kind_of_high(fd: usize) -> Result<Kind, isize> {
    let kind = classify(fd)?;
    if is_taken() {
        crate::end::unsupported(format_args!(
            "the program uses descriptor {fd} after its first thread was created; only those below {LIMIT} are supported"
        ));
    }
    Ok(kind)
}

/// The beginning of the kernel's `struct stat`, and room for the rest.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Stat {
    pub device: u64,
    pub inode: u64,
    pub links: u64,
    pub mode: u32,
    pub user: u32,
    pub group: u32,
    pad: u32,
    rdev: u64,
    pub size: u64,
    /// Block size, blocks, and three times as seconds and nanoseconds.
    pub rest: [u64; 12],
}

impl Stat {
    /// Of something that has nothing but a number and a type.
    pub fn new(inode: u64, mode: u32) -> Stat {
        // SAFETY: plain numbers, for which zeros are valid.
        let zero: Stat = unsafe { core::mem::zeroed() };
        Stat { device: 0x53, inode, links: 1, mode, ..zero }
    }
}

/// What the kernel says of a path, links at its end not followed.
pub fn stat_at(path: usize) -> Result<Stat, isize> {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut stat: Stat = unsafe { core::mem::zeroed() };
    match real(nr::lstat, [path, &raw mut stat as usize, 0, 0, 0, 0]) {
        0 => Ok(stat),
        error => Err(error),
    }
}

pub fn stat_of(fd: usize) -> Result<Stat, isize> {
    // SAFETY: plain numbers, for which zeros are valid.
    let mut stat: Stat = unsafe { core::mem::zeroed() };
    match real(nr::fstat, [fd, &raw mut stat as usize, 0, 0, 0, 0]) {
        0 => Ok(stat),
        error => Err(error),
    }
}

/// The size of the file.
pub fn size(fd: usize) -> u64 {
    stat_of(fd).map_or(0, |s| s.size)
}

fn classify(fd: usize) -> Result<Kind, isize> {
    const CHARACTER: u32 = 0o020000;
    const DIRECTORY: u32 = 0o040000;
    const REGULAR: u32 = 0o100000;
    let stat = stat_of(fd)?;
    Ok(match stat.mode & 0o170000 {
        REGULAR => Kind::Regular,
        DIRECTORY => Kind::Directory,
        CHARACTER => classify_device(fd, stat.rdev),
        _ => Kind::Other,
    })
}

fn classify_device(fd: usize, device: u64) -> Kind {
    const TCGETS: usize = 0x5401;
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff);
    let mut terminal = [0u8; 64];
    match (major, minor) {
        (1, 3 | 5 | 7) => Kind::Sink,
        (1, 8 | 9) => Kind::Random,
        _ if real(nr::ioctl, [fd, TCGETS, &raw mut terminal as usize, 0, 0, 0]) == 0 => Kind::Terminal,
        _ => Kind::Other,
    }
}

/// A descriptor is about to be closed or replaced.
pub fn about_to_change(fd: usize) {
    if !is_taken() || fd >= LIMIT {
        return;
    }
    let table = TABLE.get();
    if table.saved[fd].open && table.saved[fd].backup == 0 {
        table.saved[fd].backup = backup(fd);
    }
    table.touched.insert(fd);
}

fn backup(fd: usize) -> u16 {
    match hide_duplicate(fd) {
        Some(backup) => backup as u16,
        None => crate::end::unsupported(format_args!(
            "the program closes descriptor {fd}, and there are too few free ones to keep a duplicate of it"
        )),
    }
}

/// Duplicates a descriptor to a number that the program cannot see.
pub fn hide_duplicate(fd: usize) -> Option<usize> {
    const F_DUPFD_CLOEXEC: usize = 1030;
    let hidden = real(nr::fcntl, [fd, F_DUPFD_CLOEXEC, FIRST_HIDDEN, 0, 0, 0]);
    let hidden = usize::try_from(hidden).ok().filter(|&hidden| hidden < LIMIT)?;
    TABLE.get().hidden.insert(hidden);
    Some(hidden)
}

/// Closes a descriptor that was hidden.
pub fn close_hidden(fd: usize) {
    real(nr::close, [fd, 0, 0, 0, 0, 0]);
    TABLE.get().hidden.remove(fd);
}

/// The same, until the execution ends.
pub fn hide_until_undone(fd: usize) -> Option<usize> {
    let hidden = hide_duplicate(fd)?;
    TABLE.get().passing.insert(hidden);
    Some(hidden)
}

/// Lets `fd` be a duplicate of `by`, which is about what it was before.
pub fn replace(by: usize, fd: usize) {
    const F_GETFD: usize = 1;
    const O_CLOEXEC: usize = 0o2_000_000;
    about_to_change(fd);
    let cloexec = real(nr::fcntl, [fd, F_GETFD, 0, 0, 0, 0]) & 1 != 0;
    real(nr::dup3, [by, fd, if cloexec { O_CLOEXEC } else { 0 }, 0, 0, 0]);
}

pub fn is_writable(fd: usize) -> bool {
    const F_GETFL: usize = 3;
    const O_ACCMODE: isize = 3;
    const O_RDONLY: isize = 0;
    real(nr::fcntl, [fd, F_GETFL, 0, 0, 0, 0]) & O_ACCMODE != O_RDONLY
}

/// The descriptor is closed now.
pub fn closed(fd: usize) {
    if fd < LIMIT {
        TABLE.get().kinds[fd] = Kind::Unknown;
    }
}

/// A call that makes a descriptor has returned `result`; it stands for `kind` (`Unknown`: to be found out).
pub fn opened(result: isize, kind: Kind) -> isize {
    if result < 0 {
        return result;
    }
    let fd = result as usize;
    if fd < LIMIT {
        about_to_change(fd);
        TABLE.get().kinds[fd] = kind;
        return result;
    }
    if is_taken() || kind != Kind::Unknown {
        real(nr::close, [fd, 0, 0, 0, 0, 0]);
        return EMFILE;
    }
    result
}

/// The descriptor whose offset a read would move, if it stands for standard input. Other files are for [`super::overlay`].
pub fn shared(fd: usize) -> Option<u32> {
    match kind(fd) {
        Ok(Kind::Stdin) => Some(0),
        _ => None,
    }
}

/// The offset of some descriptor moves.
pub fn moves() {
    TABLE.get().moved = is_taken();
}

pub fn snapshot_taken() {
    for fd in (0..LIMIT).filter(|&fd| is_open(fd)) {
        save(fd);
    }
}

fn save(fd: usize) {
    const F_GETFD: usize = 1;
    const SEEK_CUR: usize = 1;
    let kind = kind(fd).unwrap_or(Kind::Other);
    let movable = matches!(kind, Kind::Regular | Kind::Directory);
    let offset = movable.then(|| real(nr::lseek, [fd, 0, SEEK_CUR, 0, 0, 0]));
    let table = TABLE.get();
    let saved = &mut table.saved[fd];
    saved.open = true;
    saved.close_on_exec = real(nr::fcntl, [fd, F_GETFD, 0, 0, 0, 0]) & 1 != 0;
    saved.kind = kind;
    saved.offset = offset.and_then(|o| usize::try_from(o).ok());
    table.at_start.insert(fd);
    if saved.offset.is_some() {
        table.movable.insert(fd);
    }
}

pub fn undo() {
    let table = TABLE.get();
    while let Some(fd) = table.touched.pop() {
        // A number that the program gave up may since be that of a hidden duplicate.
        if !table.hidden.has(fd) {
            restore(fd, &table.saved[fd]);
        }
        table.kinds[fd] = table.saved[fd].kind;
    }
    while let Some(fd) = table.passing.pop() {
        real(nr::close, [fd, 0, 0, 0, 0, 0]);
        table.hidden.remove(fd);
    }
    if core::mem::take(&mut table.moved) {
        restore_offsets(&table.saved, table.movable);
    }
}

fn restore(fd: usize, saved: &Saved) {
    const O_CLOEXEC: usize = 0o2000000;
    if saved.open {
        let flags = if saved.close_on_exec { O_CLOEXEC } else { 0 };
        real(nr::dup3, [saved.backup as usize, fd, flags, 0, 0, 0]);
    } else {
        real(nr::close, [fd, 0, 0, 0, 0, 0]);
    }
}

fn restore_offsets(saved: &[Saved; LIMIT], mut movable: Bits) {
    const SEEK_SET: usize = 0;
    while let Some(fd) = movable.pop() {
        if let Some(offset) = saved[fd].offset {
            real(nr::lseek, [fd, offset, SEEK_SET, 0, 0, 0]);
        }
    }
}

/// Where the kernel shows a descriptor, terminated.
pub fn link_path(fd: usize) -> [u8; 26] {
    let mut link = *b"/proc/self/fd/\0\0\0\0\0\0\0\0\0\0\0\0";
    let mut digits = [0u8; 10];
    let mut rest = fd as u32;
    let mut count = 0;
    while rest != 0 || count == 0 {
        digits[count] = b'0' + (rest % 10) as u8;
        rest /= 10;
        count += 1;
    }
    for (to, from) in link[14..].iter_mut().zip(digits[..count].iter().rev()) {
        *to = *from;
    }
    link
}

/// The path of a descriptor's file.
pub fn path_of(fd: usize, path: &mut [u8]) -> &[u8] {
    let link = link_path(fd);
    let got = real(nr::readlink, [link.as_ptr() as usize, path.as_mut_ptr() as usize, path.len(), 0, 0, 0]);
    &path[..got.max(0) as usize]
}

/// Ends because `what` uses a descriptor that is a pipe, a socket or a device.
pub fn refuse_other(fd: usize, what: &str) -> ! {
    refusal::uses_channel(what, path_of(fd, &mut [0; 256]))
}
