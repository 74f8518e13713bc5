//! How the bytes of a value are to be read: what debug information says of the variable's type.

use serde::{Deserialize, Serialize};

/// The type of a variable, as far as it matters to whoever reads its value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default, Serialize, Deserialize)]
pub enum ValueType {
    #[default]
    Unknown,
    Signed,
    Unsigned,
    Bool,
    Char,
    Float,
    Pointer,
    /// The names of the values.
    Enum(Vec<(i64, String)>),
}

impl ValueType {
    /// From the code that the pass writes behind a name (docs/hook-abi.md): `s4`, `u1`, `b1`, `c1`, `f8`, `p8`, `e4:RED=0,BLUE=5`.
    /// What is read in another size than the variable has is not of its type.
    pub fn parse(code: &str, size: u32) -> ValueType {
        let (head, names) = code.split_once(':').unwrap_or((code, ""));
        let Some(kind) = head.chars().next() else { return ValueType::Unknown };
        if head[kind.len_utf8()..].parse() != Ok(size) {
            return ValueType::Unknown;
        }
        match kind {
            's' => ValueType::Signed,
            'u' => ValueType::Unsigned,
            'b' => ValueType::Bool,
            'c' => ValueType::Char,
            'f' => ValueType::Float,
            'p' => ValueType::Pointer,
            'e' => ValueType::Enum(names.split(',').filter_map(enumerator).collect()),
            _ => ValueType::Unknown,
        }
    }
}

fn enumerator(text: &str) -> Option<(i64, String)> {
    let (name, value) = text.split_once('=')?;
    Some((value.parse().ok()?, name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read() {
        assert_eq!(ValueType::parse("s4", 4), ValueType::Signed);
        assert_eq!(ValueType::parse("p8", 8), ValueType::Pointer);
        let colours = vec![(0, "RED".to_owned()), (-5, "BLUE".to_owned())];
        assert_eq!(ValueType::parse("e4:RED=0,BLUE=-5", 4), ValueType::Enum(colours));
    }

    #[test]
    fn another_size_is_another_type() {
        assert_eq!(ValueType::parse("s4", 8), ValueType::Unknown);
        assert_eq!(ValueType::parse("", 0), ValueType::Unknown);
        assert_eq!(ValueType::parse("é4", 4), ValueType::Unknown);
        assert_eq!(ValueType::parse("x4", 4), ValueType::Unknown);
    }
}
