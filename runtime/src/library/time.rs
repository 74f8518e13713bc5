//! Calendar time. Some functions return a buffer of libc's own, the same for all threads: two that call them race.

use super::string::read_string;
use super::text::length;
use super::{around, before, read, write};

/// `struct tm`, and the text that `asctime` makes of one.
const BROKEN_DOWN: usize = 56;

around! {
    fn gmtime(seconds) via real {
        read(seconds, 8);
        shared(real(seconds))
    }

    fn localtime(seconds) via real {
        read(seconds, 8);
        shared(real(seconds))
    }

    fn asctime(broken_down) via real {
        read(broken_down, BROKEN_DOWN);
        shared_text(real(broken_down))
    }

    fn ctime(seconds) via real {
        read(seconds, 8);
        shared_text(real(seconds))
    }

    fn gmtime_r(seconds, to) via real {
        read(seconds, 8);
        write(to, BROKEN_DOWN);
        real(seconds, to)
    }

    fn localtime_r(seconds, to) via real {
        read(seconds, 8);
        write(to, BROKEN_DOWN);
        real(seconds, to)
    }

    fn asctime_r(broken_down, to) via real {
        read(broken_down, BROKEN_DOWN);
        let text = real(broken_down, to);
        shared_text(text)
    }

    fn ctime_r(seconds, to) via real {
        read(seconds, 8);
        let text = real(seconds, to);
        shared_text(text)
    }

    fn strftime(to, size, format, broken_down) via real {
        read_string(format);
        read(broken_down, BROKEN_DOWN);
        let len = real(to, size, format, broken_down);
        if len > 0 {
            write(to, len + 1);
        }
        len
    }

    fn strptime(text, format, broken_down) via real {
        read_string(format);
        let end = real(text, format, broken_down);
        if end == 0 {
            read(text, 1);
        } else {
            read(text, end - text);
        }
        write(broken_down, BROKEN_DOWN);
        end
    }
}

fn shared(result: usize) -> usize {
    if result != 0 {
        write(result, BROKEN_DOWN);
    }
    result
}

fn shared_text(result: usize) -> usize {
    if result != 0 {
        write(result, length(result) + 1);
    }
    result
}

before! {
    mktime: |a| write(a.word(0), BROKEN_DOWN);
    timegm: |a| write(a.word(0), BROKEN_DOWN);
    timelocal: |a| write(a.word(0), BROKEN_DOWN);
}
