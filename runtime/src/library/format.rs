//! Format strings of `printf`: which arguments are strings that are read, and which are written to (`%n`).

use super::args::VaList;
use super::text::{byte, length_at_most, wide_length};
use super::{read, string, write};

/// Arguments beyond these are not looked at.
const MOST: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Word,
    Double,
    LongDouble,
}

/// What is done to the memory that an argument points to.
#[derive(Clone, Copy)]
enum Use {
    Nothing,
    String(Limit),
    Wide(Limit),
    Count(usize),
}

#[derive(Clone, Copy)]
enum Limit {
    None,
    Bytes(usize),
    /// The value of another argument.
    Argument(usize),
}

struct Format {
    at: usize,
    /// The next argument, for those that have no number of their own.
    next: usize,
    classes: [Class; MOST],
    count: usize,
    uses: [(usize, Use); MOST],
    used: usize,
}

/// Notes the format itself and what it makes of its arguments.
pub fn print(format: usize, arguments: VaList) {
    string::read_string(format);
    let mut parsed = Format {
        at: format,
        next: 0,
        classes: [Class::Word; MOST],
        count: 0,
        uses: [(0, Use::Nothing); MOST],
        used: 0,
    };
    while parsed.conversion() {}
    parsed.apply(arguments);
}

impl Format {
    fn peek(&self) -> u8 {
        byte(self.at)
    }

    fn number(&mut self) -> Option<usize> {
        let start = self.at;
        let mut value = 0usize;
        while self.peek().is_ascii_digit() {
            value = value.saturating_mul(10).saturating_add((self.peek() - b'0') as usize);
            self.at += 1;
        }
        (self.at > start).then_some(value)
    }

    /// `n$`, if it is there.
    fn position(&mut self) -> Option<usize> {
        let start = self.at;
        match self.number() {
            Some(number) if self.peek() == b'$' && number > 0 => {
                self.at += 1;
                Some(number - 1)
            }
            _ => {
                self.at = start;
                None
            }
        }
    }

    fn argument(&mut self, position: Option<usize>, class: Class) -> usize {
        let index = position.unwrap_or(self.next);
        if position.is_none() {
            self.next += 1;
        }
        if index < MOST {
            self.classes[index] = class;
            self.count = self.count.max(index + 1);
        }
        index
    }

    /// `*`, `*n$` or a number.
    fn amount(&mut self) -> Option<Limit> {
        if self.peek() == b'*' {
            self.at += 1;
            let position = self.position();
            return Some(Limit::Argument(self.argument(position, Class::Word)));
        }
        self.number().map(Limit::Bytes)
    }

    /// The next conversion; false at the end of the format.
    fn conversion(&mut self) -> bool {
        while self.peek() != b'%' {
            if self.peek() == 0 {
                return false;
            }
            self.at += 1;
        }
        self.at += 1;
        let position = self.position();
        while matches!(self.peek(), b'-' | b'+' | b' ' | b'#' | b'0' | b'\'' | b'I') {
            self.at += 1;
        }
        self.amount();
        let mut limit = Limit::None;
        if self.peek() == b'.' {
            self.at += 1;
            limit = self.amount().unwrap_or(Limit::Bytes(0));
        }
        let size = size(&mut self.at);
        self.convert(position, limit, size)
    }

    fn convert(&mut self, position: Option<usize>, limit: Limit, size: Size) -> bool {
        let conversion = self.peek();
        if conversion == 0 {
            return false;
        }
        self.at += 1;
        let (class, action) = match conversion {
            b'%' | b'm' => return true,
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' if size.long_double => {
                (Class::LongDouble, Use::Nothing)
            }
            b'a' | b'A' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => (Class::Double, Use::Nothing),
            b's' if size.bytes == 8 => (Class::Word, Use::Wide(limit)),
            b'S' => (Class::Word, Use::Wide(limit)),
            b's' => (Class::Word, Use::String(limit)),
            b'n' => (Class::Word, Use::Count(size.bytes)),
            _ => (Class::Word, Use::Nothing),
        };
        let index = self.argument(position, class);
        if self.used < MOST && index < MOST {
            self.uses[self.used] = (index, action);
            self.used += 1;
        }
        true
    }

    fn apply(&self, mut arguments: VaList) {
        let mut values = [0; MOST];
        for (value, class) in values.iter_mut().zip(self.classes).take(self.count) {
            match class {
                Class::Word => *value = arguments.word(),
                Class::Double => arguments.skip_double(),
                Class::LongDouble => arguments.skip_long_double(),
            }
        }
        let most = |limit| match limit {
            Limit::None => usize::MAX,
            Limit::Bytes(bytes) => bytes,
            // A negative one is none.
            Limit::Argument(index) => usize::try_from(values[index.min(MOST - 1)] as i32).unwrap_or(usize::MAX),
        };
        for &(index, action) in &self.uses[..self.used] {
            let pointer = values[index];
            match action {
                _ if pointer == 0 => {}
                Use::Nothing => {}
                Use::String(limit) => {
                    let most = most(limit);
                    read(pointer, length_at_most(pointer, most).saturating_add(1).min(most));
                }
                Use::Wide(limit) => {
                    let most = most(limit);
                    read(pointer, 4 * wide_length(pointer, most).saturating_add(1).min(most));
                }
                Use::Count(bytes) => write(pointer, bytes),
            }
        }
    }
}

/// A length modifier.
#[derive(Clone, Copy)]
pub struct Size {
    /// Of an integer.
    pub bytes: usize,
    pub long_double: bool,
}

/// Reads a length modifier.
pub fn size(at: &mut usize) -> Size {
    let mut size = Size { bytes: 4, long_double: false };
    loop {
        match byte(*at) {
            b'h' => size.bytes /= 2,
            b'l' | b'j' | b'z' | b't' | b'Z' => size.bytes = 8,
            b'q' | b'L' => (size.bytes, size.long_double) = (8, true),
            _ => return size,
        }
        *at += 1;
    }
}
