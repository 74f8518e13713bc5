//! Functions of libstdc++ that programs call for strings, streams and containers, and those that count exceptions. What of these classes is in headers is
//! compiled with the program, and seen.
#![allow(non_snake_case)]

mod exceptions;
mod list;
mod stream;
mod string;
mod thread_exit;
mod tree;
