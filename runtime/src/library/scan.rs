//! `scanf` and its like: what they wrote to their arguments.

use super::args::VaList;
use super::format::size;
use super::string::read_string;
use super::text::{byte, length, wide_length, word};
use super::{Arguments, around, write};
use crate::cell::Global;
use core::ffi::CStr;

/// Notes what the first `assigned` conversions of a format stored.
fn stored(format: usize, mut arguments: VaList, assigned: i32) {
    let (mut at, mut left) = (format, assigned.max(0));
    loop {
        match byte(at) {
            0 => return,
            b'%' => at += 1,
            _ => {
                at += 1;
                continue;
            }
        }
        let suppressed = byte(at) == b'*';
        at += suppressed as usize;
        let mut width = 0;
        while byte(at).is_ascii_digit() {
            width = width * 10 + (byte(at) - b'0') as usize;
            at += 1;
        }
        let allocates = byte(at) == b'm';
        at += allocates as usize;
        let size = size(&mut at);
        let conversion = byte(at);
        if conversion == 0 {
            return;
        }
        at += 1;
        if conversion == b'[' {
            skip_set(&mut at);
        }
        if conversion == b'%' || suppressed {
            continue;
        }
        if conversion != b'n' {
            if left == 0 {
                return;
            }
            left -= 1;
        }
        let pointer = arguments.word();
        if allocates {
            write(pointer, 8);
            continue;
        }
        write(pointer, bytes(conversion, size.bytes, size.long_double, width, pointer));
    }
}

fn bytes(conversion: u8, size: usize, long_double: bool, width: usize, pointer: usize) -> usize {
    match conversion {
        b's' | b'[' if size == 8 => 4 * (wide_length(pointer, usize::MAX) + 1),
        b'S' => 4 * (wide_length(pointer, usize::MAX) + 1),
        b's' | b'[' => length(pointer) + 1,
        b'c' if size == 8 => 4 * width.max(1),
        b'C' => 4 * width.max(1),
        b'c' => width.max(1),
        b'a' | b'e' | b'f' | b'g' | b'A' | b'E' | b'F' | b'G' => {
            if long_double {
                16
            } else {
                size
            }
        }
        b'p' => 8,
        _ => size,
    }
}

/// `[^]abc]`: a bracket that comes first is one of the set.
fn skip_set(at: &mut usize) {
    *at += (byte(*at) == b'^') as usize;
    *at += (byte(*at) == b']') as usize;
    while ![0, b']'].contains(&byte(*at)) {
        *at += 1;
    }
    *at += (byte(*at) != 0) as usize;
}

/// Calls libc's version for a `va_list`.
fn call(cell: &Global<usize>, name: &CStr, first: usize, format: usize, mut list: VaList) -> usize {
    let function = super::real(cell, name);
    // SAFETY: that is its type.
    let function: extern "C" fn(usize, usize, &mut VaList) -> usize = unsafe { core::mem::transmute(function) };
    function(first, format, &mut list)
}

/// Functions with variable arguments: `name via the one for lists, reading a string or a stream`.
macro_rules! scanning {
    ($($name:ident via $list:literal, $string:literal;)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            extern "C" fn work(arguments: &Arguments) -> usize {
                static REAL: Global<usize> = Global::new(0);
                scan(arguments, &REAL, $list, $string)
            }
            super::args::call!(work)
        }
    )*};
}

fn scan(arguments: &Arguments, cell: &Global<usize>, name: &CStr, string: bool) -> usize {
    let (first, format, list) = (arguments.word(0), arguments.word(1), arguments.variable(2));
    let direct = arguments.is_direct() && super::is_librarys(super::real(cell, name));
    if direct {
        read_string(format);
        if string {
            read_string(first);
        }
    }
    let assigned = call(cell, name, first, format, list);
    if direct {
        stored(format, list, assigned as i32);
    }
    assigned
}

scanning! {
    sscanf via c"vsscanf", true;
    __isoc99_sscanf via c"__isoc99_vsscanf", true;
    __isoc23_sscanf via c"__isoc23_vsscanf", true;
    fscanf via c"vfscanf", false;
    __isoc99_fscanf via c"__isoc99_vfscanf", false;
    __isoc23_fscanf via c"__isoc23_vfscanf", false;
}

/// `scanf` has one argument less.
macro_rules! scanning_input {
    ($($name:ident via $list:literal;)*) => {$(
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name() {
            extern "C" fn work(arguments: &Arguments) -> usize {
                static REAL: Global<usize> = Global::new(0);
                let function = super::real(&REAL, $list);
                // SAFETY: that is its type.
                let function: extern "C" fn(usize, &mut VaList) -> usize = unsafe { core::mem::transmute(function) };
                let (format, list) = (arguments.word(0), arguments.variable(1));
                let direct = arguments.is_direct() && super::is_librarys(function as usize);
                let assigned = function(format, &mut list.clone());
                if direct {
                    read_string(format);
                    stored(format, list, assigned as i32);
                }
                assigned
            }
            super::args::call!(work)
        }
    )*};
}

scanning_input! {
    scanf via c"vscanf";
    __isoc99_scanf via c"__isoc99_vscanf";
    __isoc23_scanf via c"__isoc23_vscanf";
}

around! {
    fn vsscanf(text, format, list) via real {
        read_string(text);
        listed(format, list, || real(text, format, list))
    }

    fn __isoc99_vsscanf(text, format, list) via real {
        read_string(text);
        listed(format, list, || real(text, format, list))
    }

    fn vfscanf(stream, format, list) via real {
        listed(format, list, || real(stream, format, list))
    }

    fn __isoc99_vfscanf(stream, format, list) via real {
        listed(format, list, || real(stream, format, list))
    }

    fn getline(line, size, stream) via real {
        got_line(line, size, real(line, size, stream))
    }

    fn getdelim(line, size, end, stream) via real {
        got_line(line, size, real(line, size, end, stream))
    }

    fn __getdelim(line, size, end, stream) via real {
        got_line(line, size, real(line, size, end, stream))
    }
}

fn listed(format: usize, list: usize, scan: impl FnOnce() -> usize) -> usize {
    read_string(format);
    let before = VaList::at(list);
    let assigned = scan();
    stored(format, before, assigned as i32);
    assigned
}

fn got_line(line: usize, size: usize, len: usize) -> usize {
    write(line, 8);
    write(size, 8);
    if len as isize >= 0 {
        write(word(line), len + 1);
    }
    len
}
