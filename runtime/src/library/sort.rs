//! Sorting in place. The comparison is the program's own code, which may do anything, wait for a lock included: libc holds
//! none meanwhile. `bsearch`, `lfind` and the trees of `tsearch` read the program's memory only through that code.

use super::{before, write};

before! {
    qsort: |a| sorted(a.word(0), a.word(1), a.word(2));
    qsort_r: |a| sorted(a.word(0), a.word(1), a.word(2));
}

/// One element is sorted as it is.
fn sorted(array: usize, count: usize, size: usize) {
    if count > 1 {
        write(array, count.saturating_mul(size));
    }
}
