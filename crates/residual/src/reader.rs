//! Bytes of the digest. It comes from memory that the program under test can write to: everything is checked, and
//! nothing is allocated by a count that was read.

use thiserror::Error;

/// Why a digest cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the IR digest is damaged: {0}")]
pub struct Damaged(pub &'static str);

pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes that are still to be read.
    pub fn left(&self) -> usize {
        self.bytes.len()
    }

    pub fn byte(&mut self) -> Result<u8, Damaged> {
        let (&first, rest) = self.bytes.split_first().ok_or(Damaged("it ends early"))?;
        self.bytes = rest;
        Ok(first)
    }

    /// Unsigned LEB128 of at most 64 bits.
    pub fn number(&mut self) -> Result<u64, Damaged> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damaged("a number is too long"))
    }

    pub fn small(&mut self) -> Result<u32, Damaged> {
        u32::try_from(self.number()?).map_err(|_| Damaged("a number is too large"))
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> Result<u32, Damaged> {
        let number = self.small()?;
        if (number as usize) < end { Ok(number) } else { Err(Damaged("an index is out of range")) }
    }

    /// How many entries follow. Each has at least one byte.
    pub fn count(&mut self) -> Result<usize, Damaged> {
        let count = self.number()?;
        let possible = usize::try_from(count).ok().filter(|&n| n <= self.bytes.len());
        possible.ok_or(Damaged("a list is longer than the digest"))
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let (mine, rest) = self.bytes.split_at_checked(len).ok_or(Damaged("it ends early"))?;
        self.bytes = rest;
        Ok(mine)
    }
}

/// The NUL-terminated string at an offset.
pub fn text(strings: &[u8], offset: u32) -> Result<&[u8], Damaged> {
    let tail = strings.get(offset as usize..).ok_or(Damaged("a string is outside of the strings"))?;
    let end = tail.iter().position(|&b| b == 0).ok_or(Damaged("a string does not end"))?;
    Ok(&tail[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        assert_eq!(Reader::new(&[0x7f]).number(), Ok(127));
        assert_eq!(Reader::new(&[0x80, 1]).number(), Ok(128));
        let largest = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert_eq!(Reader::new(&largest).number(), Ok(u64::MAX));
        assert!(Reader::new(&[0xff; 9]).number().is_err());
        assert!(Reader::new(&[0xff; 11]).number().is_err());
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2]).number().is_err());
    }

    #[test]
    fn lists_are_no_longer_than_what_follows() {
        assert!(Reader::new(&[2, 0]).count().is_err());
        assert_eq!(Reader::new(&[1, 0]).count(), Ok(1));
    }
}
