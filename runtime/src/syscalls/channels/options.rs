//! Options of sockets: those that change what is seen here are kept, the rest is accepted.

use super::super::errno::{EFAULT, EINVAL};
use super::super::kernel::{bytes_mut, load, store};
use super::super::time::Timespec;
use super::super::{Args, turn};
use super::socket::{CAPACITY, State, Type, real_or};
use super::{found, get, touched};
use symdpor_abi::op::OpKind;
use symdpor_abi::outside::What;

const SOL_SOCKET: usize = 1;
const SO_REUSEADDR: usize = 2;
const SO_TYPE: usize = 3;
const SO_ERROR: usize = 4;
const SO_SNDBUF: usize = 7;
const SO_RCVBUF: usize = 8;
const SO_REUSEPORT: usize = 15;
const SO_RCVTIMEO: usize = 20;
const SO_SNDTIMEO: usize = 21;
const SO_ACCEPTCONN: usize = 30;
const SO_DOMAIN: usize = 39;

pub fn setsockopt(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let [_, level, option, value, len, _] = args;
        let socket = &mut get(found(fd)?).socket;
        if level != SOL_SOCKET {
            return Ok(0);
        }
        match option {
            SO_REUSEADDR | SO_REUSEPORT => socket.may_share = load::<i32>(value).ok_or(EFAULT)? != 0,
            SO_RCVTIMEO | SO_SNDTIMEO => {
                if len < size_of::<Timespec>() {
                    return Err(EINVAL);
                }
                let limit = super::super::time::microseconds_at(value).ok_or(EFAULT)?;
                if option == SO_RCVTIMEO { socket.receive_limit = limit } else { socket.send_limit = limit }
            }
            _ => {}
        }
        Ok(0)
    })
}

pub fn getsockopt(call: usize, args: Args) -> isize {
    real_or(call, args, |fd| {
        let [_, level, option, value, len, _] = args;
        let description = found(fd)?;
        if (level, option) == (SOL_SOCKET, SO_ERROR) {
            turn::take(touched(description).op(OpKind::OutsideChange, What::Ask, fd));
        }
        let socket = &mut get(description).socket;
        let answer = match (level, option) {
            (SOL_SOCKET, SO_ERROR) => -core::mem::take(&mut socket.error),
            (SOL_SOCKET, SO_TYPE) => match socket.kind {
                Type::Datagram => 2,
                Type::Packets => 5,
                _ => 1,
            },
            (SOL_SOCKET, SO_DOMAIN) => socket.family as i32,
            (SOL_SOCKET, SO_SNDBUF | SO_RCVBUF) => CAPACITY as i32,
            (SOL_SOCKET, SO_REUSEADDR | SO_REUSEPORT) => socket.may_share as i32,
            (SOL_SOCKET, SO_ACCEPTCONN) => (socket.state == State::Listening) as i32,
            _ => 0,
        };
        let room = load::<u32>(len).ok_or(EFAULT)?.min(4);
        bytes_mut(value, room as usize).ok_or(EFAULT)?.copy_from_slice(&answer.to_le_bytes()[..room as usize]);
        if store(len, room) { Ok(0) } else { Err(EFAULT) }
    })
}
