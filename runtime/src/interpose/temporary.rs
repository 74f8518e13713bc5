//! Names for temporary files and directories: libc's versions draw them from the clock, which they read without a system call (vDSO), so
//! that no two executions would use the same ones.

use super::io::result;
use crate::access;
use crate::cancel;
use crate::syscalls::{self, errno, nr, random};

const PLACE: usize = 6;
/// As libc. Names are the same in every run, so that those that earlier runs have left are there already.
const TRIES: usize = 62 * 62 * 62;

fn length(text: usize) -> usize {
    // SAFETY: the program passes a string.
    unsafe { core::ffi::CStr::from_ptr(text as *const core::ffi::c_char) }.count_bytes()
}

/// Fills the place of a template with one name after the other until `make` does not find that there is such a file.
fn fill(template: usize, suffix: i32, make: impl Fn() -> isize) -> isize {
    const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    crate::init::ensure();
    let len = length(template);
    let start = usize::try_from(suffix).ok().and_then(|suffix| len.checked_sub(PLACE + suffix));
    let Some(start) = start.map(|start| template + start) else { return errno::EINVAL };
    access::read(template, len);
    // SAFETY: within the program's string, which it lets be written.
    let place = unsafe { &mut *(start as *mut [u8; PLACE]) };
    if place != b"XXXXXX" {
        return errno::EINVAL;
    }
    access::write(start, PLACE);
    for _ in 0..TRIES {
        let mut draw = random::next();
        for letter in place.iter_mut() {
            *letter = LETTERS[(draw % LETTERS.len() as u64) as usize];
            draw /= LETTERS.len() as u64;
        }
        match make() {
            errno::EEXIST => {}
            made => return made,
        }
    }
    errno::EEXIST
}

fn file(template: usize, suffix: i32, flags: i32) -> isize {
    const ACCESS: usize = 3;
    const O_RDWR: usize = 2;
    const O_CREAT: usize = 0o100;
    const O_EXCL: usize = 0o200;
    let flags = flags as u32 as usize & !ACCESS | O_RDWR | O_CREAT | O_EXCL;
    let open = || cancel::within(|| syscalls::emulate(nr::open, [template, flags, 0o600, 0, 0, 0]));
    result(fill(template, suffix, open))
}

macro_rules! files {
    ($($name:ident($template:ident $(, $arg:ident)*) = ($suffix:expr, $flags:expr);)*) => {
        $(
            #[unsafe(no_mangle)]
            extern "C" fn $name($template: usize $(, $arg: i32)*) -> isize {
                file($template, $suffix, $flags)
            }
        )*
    };
}

files! {
    mkstemp(template) = (0, 0);
    mkstemp64(template) = (0, 0);
    mkostemp(template, flags) = (0, flags);
    mkostemp64(template, flags) = (0, flags);
    mkstemps(template, suffix) = (suffix, 0);
    mkstemps64(template, suffix) = (suffix, 0);
    mkostemps(template, suffix, flags) = (suffix, flags);
    mkostemps64(template, suffix, flags) = (suffix, flags);
}

#[unsafe(no_mangle)]
extern "C" fn mkdtemp(template: usize) -> usize {
    let made = result(fill(template, 0, || syscalls::emulate(nr::mkdir, [template, 0o700, 0, 0, 0, 0])));
    if made < 0 { 0 } else { template }
}
