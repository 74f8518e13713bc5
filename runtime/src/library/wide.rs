//! `<wchar.h>`: the common ones of strings of wide characters.

use super::text::{wide, wide_length};
use super::{Arguments, before, read, write};

const WIDE: usize = 4;

pub fn read_string(string: usize) -> usize {
    let len = wide_length(string, usize::MAX);
    read(string, WIDE * (len + 1));
    len
}

fn read_at_most(string: usize, most: usize) -> usize {
    let len = wide_length(string, most);
    read(string, WIDE * (len + 1).min(most));
    len
}

fn compare(a: &Arguments, most: usize) {
    let mut count = 0;
    while count < most {
        let (x, y) = (wide(a.word(0) + WIDE * count), wide(a.word(1) + WIDE * count));
        count += 1;
        if x == 0 || x != y {
            break;
        }
    }
    read(a.word(0), WIDE * count);
    read(a.word(1), WIDE * count);
}

fn copy(a: &Arguments) {
    let len = read_string(a.word(1));
    write(a.word(0), WIDE * (len + 1));
}

fn copy_filling(a: &Arguments) {
    read_at_most(a.word(1), a.word(2));
    write(a.word(0), WIDE * a.word(2));
}

fn move_words(a: &Arguments) {
    read(a.word(1), WIDE * a.word(2));
    write(a.word(0), WIDE * a.word(2));
}

/// Up to a character or the end.
fn search(a: &Arguments) {
    let mut count = 0;
    while ![0, a.word(1) as u32].contains(&wide(a.word(0) + WIDE * count)) {
        count += 1;
    }
    read(a.word(0), WIDE * (count + 1));
}

before! {
    wcslen: |a| { read_string(a.word(0)); };
    wcsnlen: |a| { read_at_most(a.word(0), a.word(1)); };
    wcscpy: copy;
    __wcscpy_chk: copy;
    wcpcpy: copy;
    wcsncpy: copy_filling;
    __wcsncpy_chk: copy_filling;
    wcscat: |a| {
        let (to, from) = (read_string(a.word(0)), read_string(a.word(1)));
        write(a.word(0) + WIDE * to, WIDE * (from + 1));
    };
    wcsncat: |a| {
        let (to, from) = (read_string(a.word(0)), read_at_most(a.word(1), a.word(2)));
        write(a.word(0) + WIDE * to, WIDE * (from + 1));
    };
    wcscmp: |a| compare(a, usize::MAX);
    wcsncmp: |a| compare(a, a.word(2));
    wcschr: search;
    wcsrchr: |a| { read_string(a.word(0)); };
    wcsdup: |a| { read_string(a.word(0)); };
    wmemcpy: move_words;
    __wmemcpy_chk: move_words;
    wmemmove: move_words;
    wmemset: |a| write(a.word(0), WIDE * a.word(2));
    wmemcmp: |a| {
        read(a.word(0), WIDE * a.word(2));
        read(a.word(1), WIDE * a.word(2));
    };
}
