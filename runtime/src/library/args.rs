//! The arguments of an interposed function, as its caller left them in registers and on the stack.

use super::real;
use crate::cell::Global;
use crate::names;

/// Where [`enter`] saves them. The first two fields are laid out as the ABI's register save area.
#[repr(C)]
pub struct Arguments {
    words: [usize; 6],
    floats: [[u64; 2]; 8],
    /// How many vector registers a variadic call uses.
    rax: usize,
    unused: [usize; 4],
    caller: usize,
}

/// The ABI's `va_list`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct VaList {
    next_word: u32,
    next_float: u32,
    overflow: usize,
    saved: usize,
}

const WORDS_END: u32 = 48;
const FLOATS_END: u32 = 176;

impl Arguments {
    /// The argument at a position, of those that are no floating point numbers.
    pub fn word(&self, index: usize) -> usize {
        match self.words.get(index) {
            Some(&word) => word,
            // SAFETY: arguments that do not fit into registers are on the stack, right behind the return address.
            None => unsafe { *(&raw const self.caller).add(1 + index - self.words.len()) },
        }
    }

    pub fn is_direct(&self) -> bool {
        names::is_instrumented(self.caller)
    }

    /// Whether libc calls the function because it was registered: the destructor of a static object, at exit.
    pub fn is_handler(&self) -> bool {
        static EXIT: Global<usize> = Global::new(0);
        names::are_together(self.caller, real(&EXIT, c"exit"))
    }

    /// The variable arguments after so many fixed ones.
    pub fn variable(&self, fixed: u32) -> VaList {
        let saved = &raw const *self as usize;
        VaList { next_word: 8 * fixed, next_float: WORDS_END, overflow: &raw const self.caller as usize + 8, saved }
    }
}

fn load(address: usize) -> usize {
    // SAFETY: a place of the argument list, which the caller filled.
    unsafe { *(address as *const usize) }
}

impl VaList {
    /// A copy of the list that a `va_list` argument points to.
    pub fn at(address: usize) -> VaList {
        // SAFETY: the program passes a `va_list`.
        unsafe { *(address as *const VaList) }
    }

    pub fn word(&mut self) -> usize {
        if self.next_word < WORDS_END {
            let at = self.saved + self.next_word as usize;
            self.next_word += 8;
            return load(at);
        }
        self.overflow += 8;
        load(self.overflow - 8)
    }

    pub fn skip_double(&mut self) {
        if self.next_float < FLOATS_END {
            self.next_float += 16;
        } else {
            self.overflow += 8;
        }
    }

    pub fn skip_long_double(&mut self) {
        self.overflow = self.overflow.next_multiple_of(16) + 16;
    }
}

/// The body of a naked function: saves all argument registers, calls `$work` with them, restores them, and jumps to the
/// function that it returned.
macro_rules! enter {
    ($work:path) => {
        core::arch::naked_asm!(
            "sub rsp, 0xd8",
            "mov [rsp], rdi",
            "mov [rsp + 0x08], rsi",
            "mov [rsp + 0x10], rdx",
            "mov [rsp + 0x18], rcx",
            "mov [rsp + 0x20], r8",
            "mov [rsp + 0x28], r9",
            "movaps [rsp + 0x30], xmm0",
            "movaps [rsp + 0x40], xmm1",
            "movaps [rsp + 0x50], xmm2",
            "movaps [rsp + 0x60], xmm3",
            "movaps [rsp + 0x70], xmm4",
            "movaps [rsp + 0x80], xmm5",
            "movaps [rsp + 0x90], xmm6",
            "movaps [rsp + 0xa0], xmm7",
            "mov [rsp + 0xb0], rax",
            "mov rdi, rsp",
            "call {work}",
            "mov r11, rax",
            "mov rdi, [rsp]",
            "mov rsi, [rsp + 0x08]",
            "mov rdx, [rsp + 0x10]",
            "mov rcx, [rsp + 0x18]",
            "mov r8, [rsp + 0x20]",
            "mov r9, [rsp + 0x28]",
            "movaps xmm0, [rsp + 0x30]",
            "movaps xmm1, [rsp + 0x40]",
            "movaps xmm2, [rsp + 0x50]",
            "movaps xmm3, [rsp + 0x60]",
            "movaps xmm4, [rsp + 0x70]",
            "movaps xmm5, [rsp + 0x80]",
            "movaps xmm6, [rsp + 0x90]",
            "movaps xmm7, [rsp + 0xa0]",
            "mov rax, [rsp + 0xb0]",
            "add rsp, 0xd8",
            "jmp r11",
            work = sym $work,
        )
    };
}
pub(crate) use enter;

/// The same for functions that are replaced: what `$work` returns is the result.
macro_rules! call {
    ($work:path) => {
        core::arch::naked_asm!(
            "sub rsp, 0xd8",
            "mov [rsp], rdi",
            "mov [rsp + 0x08], rsi",
            "mov [rsp + 0x10], rdx",
            "mov [rsp + 0x18], rcx",
            "mov [rsp + 0x20], r8",
            "mov [rsp + 0x28], r9",
            "movaps [rsp + 0x30], xmm0",
            "movaps [rsp + 0x40], xmm1",
            "movaps [rsp + 0x50], xmm2",
            "movaps [rsp + 0x60], xmm3",
            "movaps [rsp + 0x70], xmm4",
            "movaps [rsp + 0x80], xmm5",
            "movaps [rsp + 0x90], xmm6",
            "movaps [rsp + 0xa0], xmm7",
            "mov rdi, rsp",
            "call {work}",
            "add rsp, 0xd8",
            "ret",
            work = sym $work,
        )
    };
}
pub(crate) use call;
