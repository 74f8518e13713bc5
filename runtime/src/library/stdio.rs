//! `<stdio.h>`: the program's buffers and strings. The streams themselves are protected by locks of libc's own.

use super::args::VaList;
use super::format::print;
use super::string::read_string;
use super::text::length;
use super::{Arguments, around, before, read, real, write};
use crate::cell::Global;

/// How long the text of a format is.
fn printed(format: usize, mut list: VaList) -> usize {
    static REAL: Global<usize> = Global::new(0);
    let function = real(&REAL, c"vsnprintf");
    // SAFETY: that is its type.
    let function: extern "C" fn(usize, usize, usize, &mut VaList) -> i32 = unsafe { core::mem::transmute(function) };
    function(0, 0, format, &mut list).max(0) as usize
}

/// To a stream: the format is at this position, and its arguments follow.
fn to_stream(a: &Arguments, format: usize) {
    print(a.word(format), a.variable(format as u32 + 1));
}

/// The same with a `va_list`.
fn list_to_stream(a: &Arguments, format: usize) {
    print(a.word(format), VaList::at(a.word(format + 1)));
}

/// To the buffer that is the first argument, of some size.
fn to_buffer(a: &Arguments, format: usize, list: VaList, size: usize) {
    print(a.word(format), list);
    let len = printed(a.word(format), list);
    write(a.word(0), (len + 1).min(size));
}

fn formatted(a: &Arguments, format: usize, size: usize) {
    to_buffer(a, format, a.variable(format as u32 + 1), size);
}

fn list_formatted(a: &Arguments, format: usize, size: usize) {
    to_buffer(a, format, VaList::at(a.word(format + 1)), size);
}

fn allocated(a: &Arguments) {
    to_stream(a, 1);
    write(a.word(0), 8);
}

fn list_allocated(a: &Arguments) {
    list_to_stream(a, 1);
    write(a.word(0), 8);
}

fn put_string(a: &Arguments) {
    read_string(a.word(0));
}

fn put_bytes(a: &Arguments) {
    read(a.word(0), a.word(1).saturating_mul(a.word(2)));
}

before! {
    printf: |a| to_stream(a, 0);
    __printf_chk: |a| to_stream(a, 1);
    fprintf: |a| to_stream(a, 1);
    __fprintf_chk: |a| to_stream(a, 2);
    dprintf: |a| to_stream(a, 1);
    __dprintf_chk: |a| to_stream(a, 2);
    vprintf: |a| list_to_stream(a, 0);
    __vprintf_chk: |a| list_to_stream(a, 1);
    vfprintf: |a| list_to_stream(a, 1);
    __vfprintf_chk: |a| list_to_stream(a, 2);
    vdprintf: |a| list_to_stream(a, 1);
    sprintf: |a| formatted(a, 1, usize::MAX);
    __sprintf_chk: |a| formatted(a, 3, usize::MAX);
    snprintf: |a| formatted(a, 2, a.word(1));
    __snprintf_chk: |a| formatted(a, 4, a.word(1));
    vsprintf: |a| list_formatted(a, 1, usize::MAX);
    __vsprintf_chk: |a| list_formatted(a, 3, usize::MAX);
    vsnprintf: |a| list_formatted(a, 2, a.word(1));
    __vsnprintf_chk: |a| list_formatted(a, 4, a.word(1));
    asprintf: allocated;
    __asprintf_chk: |a| {
        to_stream(a, 2);
        write(a.word(0), 8);
    };
    vasprintf: list_allocated;
    __vasprintf_chk: |a| {
        list_to_stream(a, 2);
        write(a.word(0), 8);
    };
    puts: put_string;
    fputs: put_string;
    fputs_unlocked: put_string;
    perror: |a| {
        if a.word(0) != 0 {
            read_string(a.word(0));
        }
    };
    fwrite: put_bytes;
    fwrite_unlocked: put_bytes;
    fopen: |a| {
        read_string(a.word(0));
        read_string(a.word(1));
    };
}

around! {
    fn fgets(buffer, size, stream) via real {
        got_string(real(buffer, size, stream))
    }

    fn fgets_unlocked(buffer, size, stream) via real {
        got_string(real(buffer, size, stream))
    }

    fn __fgets_chk(buffer, capacity, size, stream) via real {
        got_string(real(buffer, capacity, size, stream))
    }

    fn fread(buffer, size, count, stream) via real {
        got_bytes(buffer, size, real(buffer, size, count, stream))
    }

    fn fread_unlocked(buffer, size, count, stream) via real {
        got_bytes(buffer, size, real(buffer, size, count, stream))
    }

    fn __fread_chk(buffer, capacity, size, count, stream) via real {
        got_bytes(buffer, size, real(buffer, capacity, size, count, stream))
    }
}

fn got_string(buffer: usize) -> usize {
    if buffer != 0 {
        write(buffer, length(buffer) + 1);
    }
    buffer
}

fn got_bytes(buffer: usize, size: usize, count: usize) -> usize {
    write(buffer, size.saturating_mul(count));
    count
}
