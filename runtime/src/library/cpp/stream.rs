//! Streams. The standard ones are synchronised as long as they are tied to C's (`sync_with_stdio`); any other one, and what
//! is written to it, must be protected by the program.

use super::super::string::read_string;
use super::super::text::word;
use super::super::{Arguments, before, read, real, write};
use super::string::{change, observe};
use crate::cell::Global;

/// The stream's buffer, and where a buffer keeps the place of the next character in and out.
const BUFFER: usize = 232;
const NEXT_IN: usize = 0x10;
const NEXT_OUT: usize = 0x28;

/// The buffer of a stream that is not synchronised.
fn buffer(stream: usize) -> Option<usize> {
    static SYNCHRONISED: Global<usize> = Global::new(0);
    // The virtual base class is where the table of virtual functions says.
    let offset = word(word(stream) - 24);
    let buffer = word(stream.wrapping_add(offset) + BUFFER);
    let table = real(&SYNCHRONISED, c"_ZTVN9__gnu_cxx18stdio_sync_filebufIcSt11char_traitsIcEEE");
    (buffer != 0 && word(buffer) != table + 16).then_some(buffer)
}

fn output(stream: usize) {
    if let Some(buffer) = buffer(stream) {
        write(buffer + NEXT_OUT, 8);
    }
}

fn input(stream: usize) {
    if let Some(buffer) = buffer(stream) {
        write(buffer + NEXT_IN, 8);
    }
}

fn put(a: &Arguments) {
    output(a.word(0));
}

fn get(a: &Arguments, size: usize) {
    input(a.word(0));
    write(a.word(1), size);
}

before! {
    // __ostream_insert(stream, text, length)
    _ZSt16__ostream_insertIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_PKS3_l: |a| {
        read(a.word(1), a.word(2));
        output(a.word(0));
    };
    // operator<<(stream, const char *)
    _ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc: |a| {
        if a.word(1) != 0 {
            read_string(a.word(1));
        }
        output(a.word(0));
    };
    // operator<<(stream, char)
    _ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_c: put;
    // operator<<(stream, string)
    _ZStlsIcSt11char_traitsIcESaIcEERSt13basic_ostreamIT_T0_ES7_RKNSt7__cxx1112basic_stringIS4_S5_T1_EE: |a| {
        observe(a.word(1));
        output(a.word(0));
    };
    // write(text, length)
    _ZNSo5writeEPKcl: |a| {
        read(a.word(1), a.word(2));
        output(a.word(0));
    };
    _ZNSo3putEc: put;
    _ZNSolsEb: put;
    _ZNSolsEs: put;
    _ZNSolsEt: put;
    _ZNSolsEi: put;
    _ZNSolsEj: put;
    _ZNSolsEl: put;
    _ZNSolsEm: put;
    _ZNSolsEx: put;
    _ZNSolsEy: put;
    _ZNSolsEf: put;
    _ZNSolsEd: put;
    _ZNSolsEPKv: put;
    _ZNSo9_M_insertIbEERSoT_: put;
    _ZNSo9_M_insertIlEERSoT_: put;
    _ZNSo9_M_insertImEERSoT_: put;
    _ZNSo9_M_insertIxEERSoT_: put;
    _ZNSo9_M_insertIyEERSoT_: put;
    _ZNSo9_M_insertIdEERSoT_: put;
    _ZNSo9_M_insertIPKvEERSoT_: put;
    // getline(stream, string, end), getline(stream, string), operator>>(stream, string)
    _ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EES4_: |a| {
        input(a.word(0));
        change(a.word(1));
    };
    _ZSt7getlineIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE: |a| {
        input(a.word(0));
        change(a.word(1));
    };
    _ZStrsIcSt11char_traitsIcESaIcEERSt13basic_istreamIT_T0_ES7_RNSt7__cxx1112basic_stringIS4_S5_T1_EE: |a| {
        input(a.word(0));
        change(a.word(1));
    };
    _ZNSirsERb: |a| get(a, 1);
    _ZNSirsERs: |a| get(a, 2);
    _ZNSirsERi: |a| get(a, 4);
    _ZNSirsERj: |a| get(a, 4);
    _ZNSirsERl: |a| get(a, 8);
    _ZNSirsERm: |a| get(a, 8);
    _ZNSirsERf: |a| get(a, 4);
    _ZNSirsERd: |a| get(a, 8);
    // ostringstream::str(): the result comes first.
    _ZNKSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEE3strEv: |a| {
        write(a.word(0), 16);
        if let Some(buffer) = buffer(a.word(1)) {
            read(buffer + NEXT_OUT, 8);
        }
    };
}
