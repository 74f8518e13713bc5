//! Members of `std::string` that are in libstdc++: all of them in C++17 and before, without optimisation.
//!
//! A string is a pointer, a length, and the capacity or up to 15 characters. Reading members read those and the characters.
//! Changing members write the length and the characters; where that needs a larger block they write the pointer too, and free
//! the old block, which is seen as what it is.

use super::super::string::read_string;
use super::super::text::word;
use super::super::{Arguments, before, read, write};

const LENGTH: usize = 8;
const CAPACITY: usize = 16;

fn characters(string: usize) -> (usize, usize) {
    (word(string), word(string + LENGTH))
}

pub fn observe(string: usize) {
    read(string, 16);
    let (data, len) = characters(string);
    read(data, len);
}

/// Its characters are replaced, or some of them.
pub fn change(string: usize) {
    read(string, 8);
    let (data, len) = characters(string);
    write(string + LENGTH, 8);
    write(data, len + 1);
}

/// So many characters are added at its end.
fn grow(string: usize, more: usize) {
    read(string, 16);
    let (data, len) = characters(string);
    let capacity = if data == string + CAPACITY { 15 } else { word(string + CAPACITY) };
    if len + more <= capacity {
        write(data + len, more + 1);
    } else {
        read(data, len);
        write(string, 8);
        write(string + CAPACITY, 8);
    }
    write(string + LENGTH, 8);
}

/// Its characters are replaced, and there are so many afterwards.
fn resize(string: usize, len: usize) {
    let data = word(string);
    let capacity = if data == string + CAPACITY { 15 } else { word(string + CAPACITY) };
    if len > capacity {
        write(string, 8);
        write(string + CAPACITY, 8);
    }
    change(string);
}

/// It changes places with another.
fn exchange(string: usize) {
    write(string, 8);
    change(string);
}

fn new(a: &Arguments) {
    write(a.word(0), 16);
}

fn changed(a: &Arguments) {
    change(a.word(0));
}

fn observed(a: &Arguments) {
    observe(a.word(0));
}

fn from_string(a: &Arguments) {
    observe(a.word(1));
    resize(a.word(0), characters(a.word(1)).1);
}

fn from_text(a: &Arguments) {
    let len = read_string(a.word(1));
    resize(a.word(0), len);
}

/// Some characters at a position are replaced by so many others.
fn replace(a: &Arguments, others: usize) {
    let len = characters(a.word(0)).1;
    resize(a.word(0), len.saturating_sub(a.word(2).min(len)) + others);
}

fn both_observed(a: &Arguments) {
    observe(a.word(0));
    observe(a.word(1));
}

fn pointer(a: &Arguments) {
    read(a.word(0), 8);
}

fn size(a: &Arguments) {
    read(a.word(0) + LENGTH, 8);
}

/// All of string's members are called like this.
macro_rules! members {
    ($($name:ident: $note:expr;)*) => { before! { $($name: $note;)* } };
}

// Of static strings they are called at exit.
before! {
    Arguments::is_handler =>
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED1Ev: |a| write(a.word(0), 16);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEED2Ev: |a| write(a.word(0), 16);
}

members! {
    // size, length, empty, capacity
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4sizeEv: size;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6lengthEv: size;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5emptyEv: size;
    // data, c_str, begin, operator[], at, front
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4dataEv: pointer;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5c_strEv: pointer;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7_M_dataEv: pointer;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5beginEv: pointer;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5beginEv: pointer;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEixEm: pointer;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEixEm: pointer;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5frontEv: pointer;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE2atEm: |a| read(a.word(0), 16);
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE2atEm: |a| read(a.word(0), 16);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE3endEv: |a| read(a.word(0), 16);
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE3endEv: |a| read(a.word(0), 16);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4backEv: |a| read(a.word(0), 16);
    // compare
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc: |a| {
        observe(a.word(0));
        read_string(a.word(1));
    };
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareERKS4_: both_observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEmmPKc: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEmmRKS4_: observed;
    // find and its like
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findEPKcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findEPKcmm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findEcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4findERKS4_m: both_observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindEPKcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindEPKcmm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5rfindEcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13find_first_ofEPKcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13find_first_ofEPKcmm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE12find_last_ofEPKcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE12find_last_ofEPKcmm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE17find_first_not_ofEPKcm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE17find_first_not_ofEPKcmm: observed;
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4copyEPcmm: observed;
    // The result comes first.
    _ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6substrEmm: |a| {
        write(a.word(0), 16);
        observe(a.word(1));
    };
    // constructors
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1Ev: new;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC2Ev: new;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1ERKS4_: |a| {
        new(a);
        observe(a.word(1));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC2ERKS4_: |a| {
        new(a);
        observe(a.word(1));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1EOS4_: |a| {
        new(a);
        change(a.word(1));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC2EOS4_: |a| {
        new(a);
        change(a.word(1));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE12_M_constructEmc: new;
    // destructors: what is read, and that nobody may use it any more
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE10_M_disposeEv: pointer;
    // growing
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9push_backEc: |a| grow(a.word(0), 1);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEpLEc: |a| grow(a.word(0), 1);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm: |a| {
        read(a.word(1), a.word(2));
        grow(a.word(0), a.word(2));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKcm: |a| {
        read(a.word(1), a.word(2));
        grow(a.word(0), a.word(2));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEmc: |a| grow(a.word(0), a.word(1));
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKc: |a| {
        let len = read_string(a.word(1));
        grow(a.word(0), len);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEpLEPKc: |a| {
        let len = read_string(a.word(1));
        grow(a.word(0), len);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendERKS4_: |a| {
        observe(a.word(1));
        grow(a.word(0), characters(a.word(1)).1);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEpLERKS4_: |a| {
        observe(a.word(1));
        grow(a.word(0), characters(a.word(1)).1);
    };
    // changing
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_assignERKS4_: from_string;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6assignERKS4_: from_string;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEaSERKS4_: from_string;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEaSEOS4_: |a| {
        exchange(a.word(1));
        exchange(a.word(0));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE4swapERS4_: |a| {
        exchange(a.word(1));
        exchange(a.word(0));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEaSEPKc: from_text;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6assignEPKc: from_text;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6assignEPKcm: |a| {
        read(a.word(1), a.word(2));
        resize(a.word(0), a.word(2));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE10_M_replaceEmmPKcm: |a| {
        read(a.word(3), a.word(4));
        replace(a, a.word(4));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE14_M_replace_auxEmmmc: |a| replace(a, a.word(3));
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7replaceEmmPKc: |a| {
        let len = read_string(a.word(3));
        replace(a, len);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7replaceEmmPKcm: |a| {
        read(a.word(3), a.word(4));
        replace(a, a.word(4));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7replaceEmmRKS4_: |a| {
        observe(a.word(3));
        replace(a, characters(a.word(3)).1);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6insertEmPKc: |a| {
        let len = read_string(a.word(2));
        resize(a.word(0), characters(a.word(0)).1 + len);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6insertEmRKS4_: |a| {
        observe(a.word(2));
        resize(a.word(0), characters(a.word(0)).1 + characters(a.word(2)).1);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5eraseEmm: changed;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE8_M_eraseEmm: changed;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_mutateEmmPKcm: |a| {
        write(a.word(0), 8);
        change(a.word(0));
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6resizeEm: |a| resize(a.word(0), a.word(1));
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6resizeEmc: |a| resize(a.word(0), a.word(1));
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE8pop_backEv: changed;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE5clearEv: changed;
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7reserveEm: |a| {
        if word(a.word(0)) != a.word(0) + CAPACITY && a.word(1) <= word(a.word(0) + CAPACITY) {
            read(a.word(0), 8);
        } else {
            resize(a.word(0), a.word(1));
        }
    };
    // The parts that the headers call.
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7_M_dataEPc: |a| write(a.word(0), 8);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE11_M_capacityEm: |a| write(a.word(0) + CAPACITY, 8);
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13_M_set_lengthEm: |a| {
        read(a.word(0), 8);
        write(a.word(0) + LENGTH, 8);
        write(word(a.word(0)) + a.word(1), 1);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13_S_copy_charsEPcPKcS7_: |a| {
        let len = a.word(2).wrapping_sub(a.word(1));
        read(a.word(1), len);
        write(a.word(0), len);
    };
    _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE13_S_copy_charsEPcS5_S5_: |a| {
        let len = a.word(2).wrapping_sub(a.word(1));
        read(a.word(1), len);
        write(a.word(0), len);
    };
}
