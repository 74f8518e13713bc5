//! Addresses of sockets.

use super::super::errno::{EAFNOSUPPORT, EFAULT, EINVAL};
use super::super::kernel::{Text, bytes_mut, load, same, store};
use super::queue::{Queue, Set};
use core::fmt::{Display, Formatter, Result as Formatted};

pub const AF_UNIX: u16 = 1;
pub const AF_INET: u16 = 2;
pub const AF_INET6: u16 = 10;

/// An address as the program passes it: family, then what the family wants. All zero: none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Address {
    len: u16,
    bytes: [u8; Address::MOST],
}

impl Default for Address {
    fn default() -> Address {
        Address { len: 0, bytes: [0; Address::MOST] }
    }
}

impl Address {
    /// The longest there is: that of a path.
    pub const MOST: usize = 110;

    fn of(bytes: &[u8]) -> Address {
        let mut address = Address { len: bytes.len() as u16, ..Address::default() };
        address.bytes[..bytes.len()].copy_from_slice(bytes);
        address
    }

    /// What is said of the sender of a message in a queue.
    pub fn read(queue: &mut Queue, at: usize, len: usize) -> Address {
        let mut address = Address { len: len.min(Address::MOST) as u16, ..Address::default() };
        queue.peek(at, &mut address.bytes[..len.min(Address::MOST)]);
        address
    }

    pub fn load(from: usize, len: usize) -> Result<Address, isize> {
        if !(2..=Address::MOST).contains(&len) {
            return Err(EINVAL);
        }
        let mut address = Address { len: len as u16, ..Address::default() };
        for (i, byte) in address.bytes[..len].iter_mut().enumerate() {
            *byte = load(from + i).ok_or(EFAULT)?;
        }
        address.trim()
    }

    /// What tells it from others.
    pub fn words(&self) -> impl Iterator<Item = u64> {
        self.bytes[..self.len as usize].iter().map(|&byte| byte.into())
    }

    /// Without what is not part of the address: the rest of a path's array, the zeros of an internet address.
    fn trim(mut self) -> Result<Address, isize> {
        match self.family() {
            AF_UNIX if self.len > 2 && self.bytes[2] != 0 => {
                let path = &self.bytes[2..self.len as usize];
                self.len = 2 + path.iter().position(|&b| b == 0).unwrap_or(path.len()) as u16;
            }
            AF_UNIX => {}
            AF_INET if self.len >= 16 => self.len = 16,
            AF_INET6 if self.len >= 28 => self.len = 28,
            AF_INET | AF_INET6 => return Err(EINVAL),
            _ => return Err(EAFNOSUPPORT),
        }
        Ok(self)
    }

    pub fn empty(family: u16) -> Address {
        let len = match family {
            AF_INET => 16,
            AF_INET6 => 28,
            _ => 2,
        };
        let mut address = Address::of(&[0; 28][..len]);
        address.bytes[..2].copy_from_slice(&family.to_le_bytes());
        address
    }

    pub fn loopback(family: u16) -> Address {
        let mut address = Address::empty(family);
        match family {
            AF_INET => address.bytes[4..8].copy_from_slice(&[127, 0, 0, 1]),
            AF_INET6 => address.bytes[23] = 1,
            _ => {}
        }
        address
    }

    /// Writes it where the program wants it, cut to the length there, which is set to the whole length. A path gets its zero.
    pub fn store(&self, to: usize, len: usize) -> Result<(), isize> {
        let room = load::<u32>(len).ok_or(EFAULT)? as usize;
        let with_zero =
            self.family() == AF_UNIX && self.len > 2 && self.bytes[2] != 0 && (self.len as usize) < Address::MOST;
        let whole = self.len as usize + with_zero as usize;
        let part = room.min(whole);
        bytes_mut(to, part).ok_or(EFAULT)?.copy_from_slice(&self.bytes[..part]);
        if store(len, whole as u32) { Ok(()) } else { Err(EFAULT) }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn family(&self) -> u16 {
        u16::from_le_bytes([self.bytes[0], self.bytes[1]])
    }

    pub fn is_internet(&self) -> bool {
        matches!(self.family(), AF_INET | AF_INET6)
    }

    pub fn port(&self) -> u16 {
        u16::from_be_bytes([self.bytes[2], self.bytes[3]])
    }

    pub fn set_port(&mut self, port: u16) {
        self.bytes[2..4].copy_from_slice(&port.to_be_bytes());
    }

    /// The machine's part of an internet address, in its longer form.
    fn host(&self) -> [u8; 16] {
        let mut host = [0; 16];
        if self.family() == AF_INET {
            host[10..12].copy_from_slice(&[0xff, 0xff]);
            host[12..].copy_from_slice(&self.bytes[4..8]);
        } else {
            host.copy_from_slice(&self.bytes[8..24]);
        }
        host
    }

    /// Whether it stands for every address of the machine.
    pub fn is_any(&self) -> bool {
        let host = self.host();
        host == [0; 16] || (host[10..12] == [0xff; 2] && host[12..] == [0; 4])
    }

    pub fn is_loopback(&self) -> bool {
        let host = self.host();
        self.is_any()
            || (host[10..12] == [0xff; 2] && host[12] == 127)
            || host == *b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01"
    }

    /// The path of a local address; empty for a name that is none.
    pub fn path(&self) -> &[u8] {
        if self.family() == AF_UNIX && self.len > 2 && self.bytes[2] != 0 {
            &self.bytes[2..self.len as usize]
        } else {
            b""
        }
    }

    /// Whether a socket with this address gets what is sent to `to`.
    pub fn is_reached_by(&self, to: &Address) -> bool {
        if !self.is_internet() || !to.is_internet() {
            return self.is_same(to);
        }
        self.port() == to.port() && (self.is_any() || to.is_any() || self.host() == to.host())
    }

    pub fn is_same(&self, other: &Address) -> bool {
        same(self.bytes(), other.bytes())
    }

    /// Which of the queues that can be told apart those at this address are.
    pub fn number(&self) -> u8 {
        if self.is_internet() {
            return (self.port() % 16) as u8;
        }
        self.bytes().iter().fold(5u8, |hash, &b| hash.wrapping_mul(31).wrapping_add(b)) % 16
    }

    pub fn set(&self) -> Set {
        let mut set = Set::default();
        set.add_number(self.number());
        set
    }
}

impl Display for Address {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        match self.family() {
            AF_INET => {
                let b = &self.bytes;
                write!(f, "{}.{}.{}.{}:{}", b[4], b[5], b[6], b[7], self.port())
            }
            AF_INET6 => write!(f, "[{}]:{}", core::net::Ipv6Addr::from(self.host()), self.port()),
            _ => write!(f, "'{}'", Text(&self.bytes[2..self.len.max(2) as usize])),
        }
    }
}
