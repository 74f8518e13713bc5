//! The links of `std::list`, and when hash tables grow.

use super::super::text::word;
use super::super::{before, read, write};

const NEXT: usize = 0;
const PREVIOUS: usize = 8;

fn linked_before(position: usize) {
    read(position + PREVIOUS, 8);
    write(word(position + PREVIOUS) + NEXT, 8);
    write(position + PREVIOUS, 8);
}

fn reversed(list: usize) {
    let mut node = list;
    loop {
        let next = word(node + NEXT);
        write(node, 16);
        if next == list {
            return;
        }
        node = next;
    }
}

before! {
    // _List_node_base::_M_hook(position)
    _ZNSt8__detail15_List_node_base7_M_hookEPS0_: |a| {
        write(a.word(0), 16);
        linked_before(a.word(1));
    };
    // _M_unhook()
    _ZNSt8__detail15_List_node_base9_M_unhookEv: |a| {
        read(a.word(0), 16);
        write(word(a.word(0) + NEXT) + PREVIOUS, 8);
        write(word(a.word(0) + PREVIOUS) + NEXT, 8);
    };
    // _M_transfer(first, last)
    _ZNSt8__detail15_List_node_base11_M_transferEPS0_S1_: |a| {
        if a.word(0) != a.word(2) {
            linked_before(a.word(0));
            linked_before(a.word(1));
            linked_before(a.word(2));
        }
    };
    // _M_reverse()
    _ZNSt8__detail15_List_node_base10_M_reverseEv: |a| reversed(a.word(0));
    // swap(list, list)
    _ZNSt8__detail15_List_node_base4swapERS0_S1_: |a| {
        write(a.word(0), 16);
        write(a.word(1), 16);
    };
    // _Prime_rehash_policy::_M_next_bkt(count): remembers when to grow next.
    _ZNKSt8__detail20_Prime_rehash_policy11_M_next_bktEm: |a| write(a.word(0) + 8, 8);
    // _M_need_rehash(buckets, elements, new ones)
    _ZNKSt8__detail20_Prime_rehash_policy14_M_need_rehashEmmm: |a| {
        read(a.word(0), 16);
        if a.word(2).wrapping_add(a.word(3)) > word(a.word(0) + 8) {
            write(a.word(0) + 8, 8);
        }
    };
}
