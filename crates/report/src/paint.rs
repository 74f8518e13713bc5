//! Colour, where it is wanted.

/// How things are emphasised; nothing at all unless output is a terminal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Paint {
    pub colour: bool,
}

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn error(self, text: &str) -> String {
        self.wrap("1;31", text)
    }

    pub fn good(self, text: &str) -> String {
        self.wrap("1;32", text)
    }

    pub fn warning(self, text: &str) -> String {
        self.wrap("1;33", text)
    }

    pub fn heading(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub fn faint(self, text: &str) -> String {
        self.wrap("2", text)
    }
}
