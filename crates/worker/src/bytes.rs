//! Reading records out of bytes that may be anything.

/// The channel's content makes no sense: the program has overwritten it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the program overwrote symdpor's memory ({0})")]
pub struct Damaged(pub &'static str);

/// A position in bytes. Every read checks the length.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline(always)]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len()).ok_or(Damaged("a record is cut"))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// Bytes that are followed by padding up to a multiple of eight.
    pub fn take_padded(&mut self, len: usize) -> Result<&'a [u8], Damaged> {
        let taken = self.take(len)?;
        self.take(len.wrapping_neg() % 8)?;
        Ok(taken)
    }

    #[inline(always)]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        Ok(self.take(N)?.try_into().expect("as long as asked for"))
    }

    #[inline(always)]
    pub fn u8(&mut self) -> Result<u8, Damaged> {
        Ok(self.array::<1>()?[0])
    }

    #[inline(always)]
    pub fn u16(&mut self) -> Result<u16, Damaged> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline(always)]
    pub fn u32(&mut self) -> Result<u32, Damaged> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline(always)]
    pub fn u64(&mut self) -> Result<u64, Damaged> {
        self.array().map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_never_go_beyond_the_end() {
        let mut reader = Reader::new(&[1, 2, 0, 0, 0]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(reader.u32(), Ok(2));
        assert!(reader.is_at_end());
        assert!(reader.u8().is_err());
        assert!(reader.take(usize::MAX).is_err());
    }

    #[test]
    fn padding_fills_up_to_eight() {
        let bytes = [7u8; 16];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.take_padded(3).map(<[u8]>::len), Ok(3));
        assert_eq!(reader.position(), 8);
        assert_eq!(reader.take_padded(8).map(<[u8]>::len), Ok(8));
        assert!(reader.take_padded(1).is_err());
    }
}
