//! Lengths of the program's strings.
//!
//! Loops over bytes would be turned into calls of `strlen` by the compiler, and that is interposed here: hence vectors, and
//! volatile reads. Like any `strlen`, this one reads whole aligned pieces, which never crosses into another page.

use core::arch::x86_64::{
    __m128i, _mm_cmpeq_epi8, _mm_load_si128, _mm_movemask_epi8, _mm_set1_epi8, _mm_setzero_si128,
};

pub fn byte(address: usize) -> u8 {
    // SAFETY: the program says that there is a string; a wild pointer faults as the program's crash.
    unsafe { (address as *const u8).read_volatile() }
}

/// Bit i is set if the byte at `piece + i` is 0 or `wanted`.
fn hits(piece: usize, wanted: u8) -> u32 {
    // SAFETY: aligned, and in the page of a byte that belongs to the string.
    unsafe {
        let bytes = _mm_load_si128(piece as *const __m128i);
        let zero = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
        let same = _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted as i8)));
        (zero | same) as u32
    }
}

/// How many bytes come before the first that is 0 or `wanted`, at most `most`.
pub fn span(start: usize, wanted: u8, most: usize) -> usize {
    let mut piece = start & !15;
    let mut found = if most == 0 { return 0 } else { hits(piece, wanted) >> (start & 15) << (start & 15) };
    while found == 0 {
        piece += 16;
        if piece.wrapping_sub(start) >= most {
            return most;
        }
        found = hits(piece, wanted);
    }
    (piece + found.trailing_zeros() as usize - start).min(most)
}

pub fn length(string: usize) -> usize {
    span(string, 0, usize::MAX)
}

pub fn length_at_most(string: usize, most: usize) -> usize {
    span(string, 0, most)
}

/// How many bytes a comparison of two strings looks at: up to the first difference or the end, inclusive.
pub fn compared(a: usize, b: usize, most: usize, fold: bool) -> usize {
    let folded = |byte: u8| if fold { byte.to_ascii_lowercase() } else { byte };
    let mut count = 0;
    while count < most {
        let (x, y) = (byte(a + count), byte(b + count));
        count += 1;
        if x == 0 || folded(x) != folded(y) {
            break;
        }
    }
    count
}

pub fn wide(address: usize) -> u32 {
    // SAFETY: as for `byte`.
    unsafe { (address as *const u32).read_volatile() }
}

pub fn wide_length(string: usize, most: usize) -> usize {
    let mut count = 0;
    while count < most && wide(string + 4 * count) != 0 {
        count += 1;
    }
    count
}

pub fn word(address: usize) -> usize {
    // SAFETY: as for `byte`.
    unsafe { (address as *const usize).read_volatile() }
}
