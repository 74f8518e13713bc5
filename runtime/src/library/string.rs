//! `<string.h>`.

use super::text::{byte, compared, length, length_at_most, span};
use super::{Arguments, Hidden, around, before, hidden, read, write};

/// A whole string, with its end.
pub fn read_string(string: usize) -> usize {
    let len = length(string);
    read(string, len + 1);
    len
}

/// A string of which at most so many bytes are looked at.
fn read_at_most(string: usize, most: usize) -> usize {
    let len = length_at_most(string, most);
    read(string, (len + 1).min(most));
    len
}

fn copy(a: &Arguments) {
    let len = read_string(a.word(1));
    write(a.word(0), len + 1);
}

/// Fills up with zeros.
fn copy_filling(a: &Arguments) {
    read_at_most(a.word(1), a.word(2));
    write(a.word(0), a.word(2));
}

fn append(a: &Arguments) {
    let (to, from) = (read_string(a.word(0)), read_string(a.word(1)));
    write(a.word(0) + to, from + 1);
}

fn append_at_most(a: &Arguments) {
    let to = read_string(a.word(0));
    let from = read_at_most(a.word(1), a.word(2));
    write(a.word(0) + to, from + 1);
}

/// `strlcpy`: the source is read to its end, the target written up to its size.
fn copy_cut(a: &Arguments) {
    let from = read_string(a.word(1));
    write(a.word(0), (from + 1).min(a.word(2)));
}

fn append_cut(a: &Arguments) {
    let (size, from) = (a.word(2), read_string(a.word(1)));
    let to = read_at_most(a.word(0), size);
    write(a.word(0) + to, (from + 1).min(size - to));
}

fn compare(a: &Arguments, most: usize, fold: bool) {
    let count = compared(a.word(0), a.word(1), most, fold);
    read(a.word(0), count);
    read(a.word(1), count);
}

fn both(a: &Arguments) {
    read_string(a.word(0));
    read_string(a.word(1));
}

fn whole(a: &Arguments) {
    read_string(a.word(0));
}

/// Up to a byte or the end.
fn search(a: &Arguments) {
    read(a.word(0), span(a.word(0), a.word(1) as u8, usize::MAX) + 1);
}

/// Of so many bytes, those up to a byte. Zeros do not end it.
fn found(from: usize, wanted: u8, most: usize) -> usize {
    let mut count = 0;
    while count < most {
        count += 1;
        if byte(from + count - 1) == wanted {
            break;
        }
    }
    count
}

before! {
    strlen: whole;
    strnlen: |a| { read_at_most(a.word(0), a.word(1)); };
    strcpy: copy;
    __strcpy_chk: copy;
    stpcpy: copy;
    __stpcpy_chk: copy;
    strncpy: copy_filling;
    __strncpy_chk: copy_filling;
    stpncpy: copy_filling;
    __stpncpy_chk: copy_filling;
    strcat: append;
    __strcat_chk: append;
    strncat: append_at_most;
    __strncat_chk: append_at_most;
    strlcpy: copy_cut;
    __strlcpy_chk: copy_cut;
    strlcat: append_cut;
    __strlcat_chk: append_cut;
    strcmp: |a| compare(a, usize::MAX, false);
    strncmp: |a| compare(a, a.word(2), false);
    strcasecmp: |a| compare(a, usize::MAX, true);
    strncasecmp: |a| compare(a, a.word(2), true);
    strcoll: both;
    strverscmp: both;
    strchr: search;
    strchrnul: search;
    strrchr: whole;
    strdup: whole;
    __strdup: whole;
    strndup: |a| { read_at_most(a.word(0), a.word(1)); };
    __strndup: |a| { read_at_most(a.word(0), a.word(1)); };
    memchr: |a| read(a.word(0), found(a.word(0), a.word(1) as u8, a.word(2)));
    rawmemchr: |a| read(a.word(0), found(a.word(0), a.word(1) as u8, usize::MAX));
    memmem: |a| {
        read(a.word(0), a.word(1));
        read(a.word(2), a.word(3));
    };
    memccpy: |a| {
        let count = found(a.word(1), a.word(2) as u8, a.word(3));
        read(a.word(1), count);
        write(a.word(0), count);
    };
}

/// A search in a string whose result says how far it went: to the end, if there is none.
fn searched(string: usize, result: usize, more: usize) {
    if result == 0 {
        read_string(string);
    } else {
        read(string, result - string + more);
    }
}

/// What a tokeniser read from `start` on and wrote, if it ended at `next`.
fn token(start: usize, next: usize) {
    if next == 0 {
        read_string(start);
    } else if next > start {
        // It stops after the delimiter that it overwrote, or at the end of the string.
        read(start, next - start);
        write(next - 1, (byte(next - 1) == 0) as usize);
    }
}

around! {
    fn memrchr(from, wanted, len) via real {
        let result = real(from, wanted, len);
        if result == 0 {
            read(from, len);
        } else {
            read(result, from + len - result);
        }
        result
    }

    fn strstr(string, part) via real {
        let len = read_string(part);
        let result = real(string, part);
        searched(string, result, len);
        result
    }

    fn strcasestr(string, part) via real {
        let len = read_string(part);
        let result = real(string, part);
        searched(string, result, len);
        result
    }

    fn strpbrk(string, set) via real {
        read_string(set);
        let result = real(string, set);
        searched(string, result, 1);
        result
    }

    fn strspn(string, set) via real {
        read_string(set);
        let result = real(string, set);
        read(string, result + 1);
        result
    }

    fn strcspn(string, set) via real {
        read_string(set);
        let result = real(string, set);
        read(string, result + 1);
        result
    }

    fn strtok_r(string, set, place) via real {
        tokenise(string, set, place, real)
    }

    fn __strtok_r(string, set, place) via real {
        tokenise(string, set, place, real)
    }

    fn strsep(place, set) via real {
        read_string(set);
        write(place, 8);
        let start = super::text::word(place);
        let result = real(place, set);
        if start != 0 {
            token(start, super::text::word(place));
        }
        result
    }

    fn strxfrm(to, from, size) via real {
        read_string(from);
        let len = real(to, from, size);
        write(to, (len + 1).min(size));
        len
    }

    fn strerror_r(error, buffer, size) via real {
        let result = real(error, buffer, size);
        if result == buffer {
            write(buffer, (length(buffer) + 1).min(size));
        }
        result
    }

    fn __xpg_strerror_r(error, buffer, size) via real {
        let result = real(error, buffer, size);
        write(buffer, (length_at_most(buffer, size) + 1).min(size));
        result
    }
}

fn tokenise(string: usize, set: usize, place: usize, real: extern "C" fn(usize, usize, usize) -> usize) -> usize {
    read_string(set);
    write(place, 8);
    let start = if string == 0 { super::text::word(place) } else { string };
    let result = real(string, set, place);
    if start != 0 {
        token(start, super::text::word(place));
    }
    result
}

// The place where `strtok` goes on is its own: two threads that call it race for it.
around! {
    fn strtok(string, set) via real {
        let _ = real;
        let place = hidden(Hidden::Strtok);
        static REENTRANT: crate::cell::Global<usize> = crate::cell::Global::new(0);
        let function = super::real(&REENTRANT, c"strtok_r");
        // SAFETY: that is its type.
        let function: extern "C" fn(usize, usize, usize) -> usize = unsafe { core::mem::transmute(function) };
        tokenise(string, set, place, function)
    }
}
