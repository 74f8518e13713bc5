//! The module's strings: NUL-terminated, one after the other, each kept once.

use std::collections::HashMap;

pub struct Strings {
    bytes: Vec<u8>,
    offsets: HashMap<String, u32>,
}

impl Strings {
    /// Offset 0 is the empty string.
    pub fn new() -> Strings {
        Strings { bytes: vec![0], offsets: HashMap::from([(String::new(), 0)]) }
    }

    pub fn offset(&mut self, text: &str) -> u32 {
        if let Some(&offset) = self.offsets.get(text) {
            return offset;
        }
        let offset = self.bytes.len() as u32;
        self.bytes.extend(text.bytes().filter(|&b| b != 0));
        self.bytes.push(0);
        self.offsets.insert(text.to_owned(), offset);
        offset
    }

    /// Two strings, the second one behind the first.
    pub fn offset_of_pair(&mut self, first: &str, second: &str) -> u32 {
        let pair = format!("{first}\0{second}");
        if let Some(&offset) = self.offsets.get(&pair) {
            return offset;
        }
        let offset = self.bytes.len() as u32;
        for text in [first, second] {
            self.bytes.extend(text.bytes().filter(|&b| b != 0));
            self.bytes.push(0);
        }
        self.offsets.insert(pair, offset);
        offset
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
