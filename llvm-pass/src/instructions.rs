//! The text of inline assembly, as far as it tells how memory is accessed: x86 in AT&T's syntax.

use crate::atomics::order;

/// How a piece of assembly accesses memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// With ordinary instructions, or unknown ones.
    Plain,
    /// With a locked instruction: one atomic read-modify-write.
    Locked,
    /// One move and nothing else.
    Move,
    /// Not at all; it orders the accesses around.
    Fence(u32),
}

/// A template as its instructions, each as words: `lock; xaddl $0, $1` is `lock`, and `xaddl $0, $1`.
pub struct Text<'a> {
    instructions: Vec<&'a str>,
}

/// Instructions that can be locked; a letter for the size may follow.
const LOCKABLE: [&str; 15] =
    ["cmpxchg", "xchg", "xadd", "add", "sub", "inc", "dec", "and", "or", "xor", "not", "neg", "bts", "btr", "btc"];

fn mnemonic(instruction: &str) -> &str {
    instruction.split_whitespace().next().unwrap_or("")
}

/// Local labels are numbers.
fn without_label(line: &str) -> &str {
    let label = line.split_once(':').filter(|(label, _)| label.chars().all(|c| c.is_ascii_digit()));
    label.map_or(line, |(_, rest)| rest.trim())
}

fn without_prefix(line: &str) -> &str {
    let line = line.trim();
    let rest = line.strip_prefix("rep").or(line.strip_prefix("lock")).filter(|r| r.starts_with(char::is_whitespace));
    rest.map_or(line, str::trim)
}

fn letter_size(letter: &str) -> Option<u32> {
    match letter {
        "b" => Some(1),
        "w" => Some(2),
        "l" => Some(4),
        "q" => Some(8),
        _ => None,
    }
}

/// What follows `name` in the mnemonic: nothing, or the letter of a size.
fn letter_of<'a>(mnemonic: &'a str, name: &str) -> Option<&'a str> {
    mnemonic.strip_prefix(name).filter(|rest| rest.is_empty() || letter_size(rest).is_some())
}

fn is_lockable(mnemonic: &str) -> bool {
    let known = |name: &&str| letter_of(mnemonic, name).is_some();
    matches!(mnemonic, "cmpxchg8b" | "cmpxchg16b") || LOCKABLE.iter().any(known)
}

fn is_move(mnemonic: &str) -> bool {
    letter_of(mnemonic, "mov").is_some()
}

fn size_of(mnemonic: &str) -> Option<u32> {
    match mnemonic {
        "cmpxchg8b" => return Some(8),
        "cmpxchg16b" => return Some(16),
        _ => {}
    }
    let letter = |name: &&str| letter_of(mnemonic, name);
    LOCKABLE.iter().chain(&["mov"]).find_map(letter).and_then(letter_size)
}

impl<'a> Text<'a> {
    pub fn new(template: &'a str) -> Text<'a> {
        let lines = template.split(['\n', ';']).map(|line| without_label(line.trim()));
        Text { instructions: lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect() }
    }

    /// The instruction that is locked. `xchg` with memory locks by itself.
    fn locked(&self) -> Option<&'a str> {
        let after_prefix = |i: usize| match self.instructions[i].strip_prefix("lock")? {
            "" => self.instructions.get(i + 1).copied(),
            rest => rest.starts_with(char::is_whitespace).then(|| rest.trim()),
        };
        let exchange = || self.instructions.iter().copied().find(|line| mnemonic(line).starts_with("xchg"));
        (0..self.instructions.len()).find_map(after_prefix).or_else(exchange)
    }

    /// Relative to the thread's own storage: an operand is no address but an offset.
    pub fn is_thread_local(&self) -> bool {
        self.instructions.iter().any(|line| line.contains("%fs:") || line.contains("%gs:"))
    }

    pub fn manner(&self) -> Manner {
        if self.locked().is_some() {
            return Manner::Locked;
        }
        match self.instructions[..] {
            ["mfence"] => Manner::Fence(order::SEQ_CST),
            ["lfence"] => Manner::Fence(order::ACQUIRE),
            ["sfence"] => Manner::Fence(order::RELEASE),
            [line] if is_move(mnemonic(line)) => Manner::Move,
            _ => Manner::Plain,
        }
    }

    /// The instruction that `manner` speaks of.
    fn subject(&self) -> Option<&'a str> {
        self.locked().or_else(|| self.instructions.first().copied().filter(|line| is_move(mnemonic(line))))
    }

    /// Bytes that the instruction accesses, if its name tells.
    pub fn size(&self) -> Option<u32> {
        size_of(mnemonic(self.subject()?))
    }

    /// Whether the instruction goes through the address in operand `number`.
    pub fn goes_through(&self, number: usize) -> bool {
        let through = |line: &str| line.contains(&format!("(${number})")) || line.contains(&format!("(${{{number}}})"));
        self.subject().is_some_and(through)
    }

    /// Whether nothing but operands is accessed: known instructions only, and no other address.
    pub fn is_understood(&self) -> bool {
        self.instructions.iter().all(|line| {
            let line = without_prefix(line);
            let name = mnemonic(line);
            let silent = matches!(name, "" | "lock" | "pause" | "nop" | "mfence" | "lfence" | "sfence");
            silent || ((is_lockable(name) || is_move(name) || name.starts_with("set")) && is_plain_operands(line))
        })
    }
}

/// No address but what operands stand for, and the top of the stack as fences use it.
fn is_plain_operands(line: &str) -> bool {
    let operands = line.strip_prefix(mnemonic(line)).unwrap_or("").split(',').map(str::trim);
    operands.into_iter().all(|operand| match operand.strip_suffix("(%rsp)").or(operand.strip_suffix("(%esp)")) {
        Some(offset) => offset.chars().all(|c| c.is_ascii_digit() || c == '-'),
        None => operand.is_empty() || (operand.starts_with(['$', '%']) && !operand.contains('(')),
    })
}

/// Whether a move through an address in a register is a store: in this syntax the last operand is the target.
pub fn stores_through(text: &Text) -> bool {
    text.subject().is_some_and(|line| line.trim_end().ends_with(')'))
}
