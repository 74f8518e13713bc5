//! The environment: reading it is safe as long as nobody changes it.

use super::string::read_string;
use super::{Arguments, Hidden, before, hidden, read, write};

fn look_up(a: &Arguments) {
    read_string(a.word(0));
    read(hidden(Hidden::Environment), 8);
}

fn change(a: &Arguments, strings: usize) {
    for i in 0..strings {
        read_string(a.word(i));
    }
    write(hidden(Hidden::Environment), 8);
}

before! {
    getenv: look_up;
    secure_getenv: look_up;
    setenv: |a| change(a, 2);
    putenv: |a| change(a, 1);
    unsetenv: |a| change(a, 1);
    clearenv: |a| change(a, 0);
}
