//! Binding sockets to addresses, and asking for these.

use super::super::Args;
use super::super::errno::{EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENOTCONN};
use super::super::turn;
use super::address::Address;
use super::socket::{Type, real_or};
use super::{Kind, channels, found, get};
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

/// Ports that the system chooses begin here, as they do with the kernel.
const FIRST_PORT: u16 = 32_768;

pub fn bind(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let address = Address::load(args[1], args[2])?;
        let description = found(fd)?;
        let socket = &get(description).socket;
        if socket.is_bound || address.family() != socket.family {
            return Err(EINVAL);
        }
        if address.is_internet() && !address.is_loopback() {
            return Err(EADDRNOTAVAIL);
        }
        turn::copies(address.words());
        turn::take(address.set().op(OpKind::OutsideChange, What::Open, fd));
        take(description, address)?;
        Ok(0)
    })
}

/// Gives a socket an address, unless another has it.
fn take(description: usize, mut address: Address) -> Result<(), isize> {
    if address.is_internet() && address.port() == 0 {
        address.set_port(free_port());
    }
    if is_taken(description, &address) {
        return Err(EADDRINUSE);
    }
    let d = get(description);
    d.socket.address = address;
    d.socket.is_bound = true;
    if d.socket.kind == Type::Datagram
        && let Some(inbox) = d.inbox()
    {
        inbox.number = address.number();
    }
    Ok(())
}

fn free_port() -> u16 {
    let channels = channels();
    channels.ports += 1;
    FIRST_PORT + (channels.ports - 1) % 28_000
}

/// Whether another socket of the same type has the address. Connections that came in through it do not count.
fn is_taken(description: usize, address: &Address) -> bool {
    let own = get(description).socket;
    channels().descriptions.iter().enumerate().any(|(i, d)| {
        let socket = &d.socket;
        let both_share = own.may_share && socket.may_share;
        i != description
            && d.kind == Kind::Socket
            && socket.is_bound
            && socket.kind == own.kind
            && socket.address.is_reached_by(address)
            && !both_share
    })
}

/// A socket that has no address gets one when it needs one.
pub fn bind_if_needed(description: usize) {
    let socket = &get(description).socket;
    if !socket.is_bound && socket.is_internet() {
        // A port that is free: this does not fail.
        let _ = take(description, Address::loopback(socket.family));
    }
}

pub fn getsockname(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let socket = &get(found(fd)?).socket;
        let address = if socket.address.is_empty() { Address::empty(socket.family) } else { socket.address };
        address.store(args[1], args[2]).map(|()| 0)
    })
}

pub fn getpeername(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let socket = &get(found(fd)?).socket;
        if socket.peer.is_empty() {
            return Err(ENOTCONN);
        }
        socket.peer.store(args[1], args[2]).map(|()| 0)
    })
}
