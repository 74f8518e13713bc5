//! Who is at an address: a socket of this program, somebody outside, or nobody.

use super::super::errno::{ECONNREFUSED, ENOENT};
use super::super::kernel::same;
use super::super::world;
use super::address::Address;
use super::socket::{Socket, State, Type};
use super::{Kind, channels, get};
use crate::end::unsupported;
use crate::snapshot::is_taken;
use crate::sys::maps;

fn find(good: impl Fn(&Socket) -> bool) -> Option<usize> {
    channels().descriptions.iter().position(|d| d.kind == Kind::Socket && good(&d.socket))
}

/// The socket of the same type that is bound to an address.
pub fn bound(own: &Socket, to: &Address) -> Option<usize> {
    find(|s| s.kind == own.kind && s.is_bound && s.address.is_reached_by(to))
}

/// The socket that takes connections to an address.
pub fn listening(own: &Socket, to: &Address) -> Option<usize> {
    find(|s| s.kind == own.kind && s.state == State::Listening && s.address.is_reached_by(to))
}

/// A socket that takes connections, and to which nobody in this program has ever connected.
pub fn lonely() -> Option<Address> {
    find(|s| s.state == State::Listening && !s.was_reached).map(|d| get(d).socket.address)
}

/// What is known to be outside is refused by name; what is nowhere is an error, for connections.
pub fn check_inside(description: usize, to: &Address, what: &str) -> Result<(), isize> {
    let own = &get(description).socket;
    let stream = own.kind != Type::Datagram;
    if bound(own, to).is_some() {
        return Ok(());
    }
    if is_outside(to, stream && is_taken())? {
        unsupported(format_args!(
            "the program {what} {to}, which is outside of this process; only sockets within the program are supported"
        ));
    }
    Ok(())
}

/// Whether an address that is nobody's in this program is somebody else's. A path that nobody has is an error.
pub fn is_outside(to: &Address, stream: bool) -> Result<bool, isize> {
    if to.is_internet() {
        return Ok(!to.is_loopback() || stream && listens_outside(to.port()));
    }
    match to.path() {
        b"" => Err(ECONNREFUSED),
        path if is_on_disk(path) => Ok(true),
        _ => Err(ENOENT),
    }
}

fn is_on_disk(path: &[u8]) -> bool {
    let mut terminated = [0; Address::MOST + 1];
    terminated[..path.len()].copy_from_slice(path);
    super::super::descriptors::stat_at(terminated.as_ptr() as usize).is_ok()
}

/// Whether some other process of the machine takes connections at a port, as the kernel's tables tell.
fn listens_outside(port: u16) -> bool {
    const ROOM: usize = 256 << 10;
    let buffer = world::allocate(ROOM);
    // The kernel writes to it, and cannot do so while the page is as the snapshot has it.
    super::super::kernel::writable(buffer, ROOM);
    let text = world::bytes(buffer, ROOM);
    let mut wanted = *b":0000 ";
    for (i, digit) in wanted[1..5].iter_mut().enumerate() {
        *digit = b"0123456789ABCDEF"[(port >> (12 - 4 * i) & 15) as usize];
    }
    let listed = [c"/proc/net/tcp", c"/proc/net/tcp6"].iter().any(|path| {
        let len = maps::read_file(path, text).unwrap_or(0);
        text[..len].split(|&b| b == b'\n').any(|line| is_listening(line, &wanted))
    });
    world::release(buffer, ROOM);
    listed
}

/// A line has the local address, the other's, which is all zeros, and the state, 0A for one that listens.
fn is_listening(line: &[u8], port: &[u8]) -> bool {
    let Some(at) = line.windows(port.len()).position(|w| same(w, port)) else { return false };
    let mut rest = line[at + port.len()..].split(|&b| b == b' ');
    let other = rest.next().unwrap_or(b"");
    other.iter().all(|&b| b == b'0' || b == b':') && rest.next().is_some_and(|state| same(state, b"0A"))
}
