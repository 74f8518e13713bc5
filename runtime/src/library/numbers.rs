//! Numbers from strings.

use super::string::read_string;
use super::text::byte;
use super::{Arguments, before, real, write};
use crate::cell::Global;
use core::ffi::CStr;

/// How far a conversion reads: what it used and the character after it. `convert` finds the end of what is used.
fn converted(string: usize, end: usize) {
    let mut first = string;
    while matches!(byte(first), b' ' | b'\t'..=b'\r') {
        first += 1;
    }
    super::read(string, end.max(first) + 1 - string);
}

fn store_end(place: usize) {
    if place != 0 {
        write(place, 8);
    }
}

/// `strtol` and its like, with the base where it is.
fn integer(a: &Arguments, base: usize) {
    static REAL: Global<usize> = Global::new(0);
    let function = real(&REAL, c"strtoull");
    // SAFETY: that is its type.
    let function: extern "C" fn(usize, &mut usize, usize) -> usize = unsafe { core::mem::transmute(function) };
    let mut end = a.word(0);
    function(a.word(0), &mut end, base);
    converted(a.word(0), end);
}

fn integer_and_end(a: &Arguments) {
    integer(a, a.word(2));
    store_end(a.word(1));
}

/// `strtod` and its like. They all read the same.
fn float(a: &Arguments) {
    static REAL: Global<usize> = Global::new(0);
    const NAME: &CStr = c"strtod";
    let function = real(&REAL, NAME);
    // SAFETY: that is its type.
    let function: extern "C" fn(usize, &mut usize) -> f64 = unsafe { core::mem::transmute(function) };
    let mut end = a.word(0);
    function(a.word(0), &mut end);
    converted(a.word(0), end);
}

fn float_and_end(a: &Arguments) {
    float(a);
    store_end(a.word(1));
}

before! {
    atoi: |a| integer(a, 10);
    atol: |a| integer(a, 10);
    atoll: |a| integer(a, 10);
    atof: float;
    strtol: integer_and_end;
    strtoll: integer_and_end;
    strtoul: integer_and_end;
    strtoull: integer_and_end;
    strtoimax: integer_and_end;
    strtoumax: integer_and_end;
    __isoc23_strtol: integer_and_end;
    __isoc23_strtoll: integer_and_end;
    __isoc23_strtoul: integer_and_end;
    __isoc23_strtoull: integer_and_end;
    __isoc23_strtoimax: integer_and_end;
    __isoc23_strtoumax: integer_and_end;
    strtod: float_and_end;
    strtof: float_and_end;
    strtold: float_and_end;
    a64l: |a| { read_string(a.word(0)); };
}
