//! Named semaphores. The names are the process's own: nothing is shared with other processes, and nothing is left in the
//! file system.

use crate::exec;
use crate::keys;
use crate::semaphore;
use crate::syscalls::errno;
use core::ffi::{CStr, c_char};

const MOST: usize = 64;
const BYTES: usize = 32;
const O_CREAT: i32 = 0o100;
const O_EXCL: i32 = 0o200;
const ENOENT: isize = -2;
const EEXIST: isize = -17;
const ENAMETOOLONG: isize = -36;

#[derive(Clone, Copy)]
struct Named {
    /// A hash of the name; 0 once it is unlinked.
    name: u128,
    /// 0: this entry is free.
    address: usize,
    opened: u32,
}

/// Part of [`exec::Exec`]. All zero: there are none.
pub struct NamedSemaphores([Named; MOST]);

fn all() -> &'static mut [Named; MOST] {
    &mut exec::get().semaphores.0
}

fn failed(error: isize) -> usize {
    errno::set(error);
    0
}

/// A leading slash makes no difference, further ones are not allowed.
fn hash(name: *const c_char) -> Result<u128, isize> {
    // SAFETY: the caller passed a string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let bytes = bytes.strip_prefix(b"/").unwrap_or(bytes);
    match bytes.len() {
        0 => Err(errno::EINVAL),
        252.. => Err(ENAMETOOLONG),
        _ if bytes.contains(&b'/') => Err(errno::EINVAL),
        _ => {
            let step = |hash: u128, &byte: &u8| (hash ^ byte as u128).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
            Ok(bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, step) | 1)
        }
    }
}

fn find(name: u128) -> Option<&'static mut Named> {
    all().iter_mut().find(|n| n.address != 0 && n.name == name)
}

pub fn open(name: *const c_char, flags: i32, value: u32) -> usize {
    let name = match hash(name) {
        Ok(name) => name,
        Err(error) => return failed(error),
    };
    // Who makes it, and who finds it made, is a matter of order.
    keys::visible();
    if let Some(found) = find(name) {
        if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL {
            return failed(EEXIST);
        }
        found.opened += 1;
        return found.address;
    }
    if flags & O_CREAT == 0 {
        return failed(ENOENT);
    }
    let Some(free) = all().iter_mut().find(|n| n.address == 0) else { return failed(errno::EMFILE) };
    let exec = exec::get();
    let address = exec.heap.allocate(exec.current, BYTES, 16, 0) as usize;
    if address == 0 {
        return failed(errno::ENOMEM);
    }
    if semaphore::init(address, value) != 0 {
        return 0;
    }
    *free = Named { name, address, opened: 1 };
    address
}

pub fn close(address: usize) -> i32 {
    keys::visible();
    let Some(named) = all().iter_mut().find(|n| n.address == address && n.opened > 0) else {
        return errno::result(errno::EINVAL);
    };
    named.opened -= 1;
    if named.opened == 0 && named.name == 0 {
        named.address = 0;
    }
    0
}

pub fn unlink(name: *const c_char) -> i32 {
    keys::visible();
    let Some(named) = hash(name).ok().and_then(find) else { return errno::result(ENOENT) };
    named.name = 0;
    if named.opened == 0 {
        named.address = 0;
    }
    0
}
