//! Random programs: what the hooks report at -O1 to -O3 is what they report at -O0.
//!
//! A program goes through rounds of plain accesses, separated by atomic increments that no access may be moved over. In
//! each round, and for each variable, the optimised program must write exactly when the plain one does. It must not
//! read what the plain one does not touch; and what the plain one reads it must read too, or have written (a write
//! takes part in every race that the read does).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use crate::harness::Workshop;

const PROGRAMS: u64 = 24;

/// A small generator of pseudo-random numbers (SplitMix64): the same programs in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn pick<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len() as u64) as usize]
    }
}

const HEADER: &str = "#include <stdatomic.h>\nstruct pair { int left, right; };\nint a, b, c;\nstatic int d, e;\n\
    short narrow;\nlong wide;\nstruct pair p, *q = &p;\nint table[8];\nstatic int rows[8];\natomic_int mark;\n\
    struct { unsigned low : 3, : 0, high : 5; } bits;\nstatic void set(int *to, int value) { if (to) *to = value; }\n";

const PLACES: [&str; 11] = ["a", "b", "c", "d", "e", "narrow", "wide", "p.left", "q->right", "table[2]", "rows[k & 7]"];

/// Functions that later code may call: with an argument, without inlining or with.
fn generate(seed: u64) -> String {
    let mut random = Random(seed);
    let mut text = HEADER.to_owned();
    for name in ["f0", "f1", "f2"] {
        let inlined = random.pick(&["static inline", "__attribute__((noinline))", "static"]);
        let body = block(&mut random, 2, &[]);
        _ = writeln!(text, "{inlined} int {name}(int k) {{ int x = k, y = 1;{body} return x + y; }}");
    }
    text.push_str("int main(int k, char **argv) { int x = k, y = 2;\n");
    for _ in 0..6 {
        let body = block(&mut random, 3, &["f0", "f1", "f2"]);
        _ = writeln!(text, "  {{{body} }}\n  atomic_fetch_add(&mark, 1);");
    }
    text + "  return (x + y) & 0;\n}\n"
}

fn block(random: &mut Random, depth: u32, functions: &[&str]) -> String {
    (0..1 + random.below(4)).map(|_| statement(random, depth, functions)).collect()
}

fn statement(random: &mut Random, depth: u32, functions: &[&str]) -> String {
    let place = random.pick(&PLACES);
    let value = expression(random);
    match random.below(if depth == 0 { 7 } else { 12 }) {
        0 | 1 => format!(" {place} = {value};"),
        2 => format!(" {place} += {value};"),
        3 => format!(" x = {value};"),
        4 if !functions.is_empty() => format!(" y ^= {}({value});", random.pick(functions)),
        4 => format!(" y += {value} > x;"),
        5 => format!(" bits.low = {value}; if (x > 2 && bits.high) y++;"),
        6 => format!(" set(x & 2 ? &{} : 0, {value});", random.pick(&["a", "d", "p.left", "rows[1]"])),
        7 => {
            let (then, other) = (block(random, depth - 1, functions), block(random, depth - 1, functions));
            format!(" if ({} > {}) {{{then} }} else {{{other} }}", expression(random), random.below(4))
        }
        8 => {
            let body = block(random, depth - 1, functions);
            format!(" for (int i = 0; i < {} + (x & 1); i++) {{{body} x += i; }}", random.below(5))
        }
        9 => format!(" {{ int *r = x & 1 ? &a : &b; *r = {value}; }}"),
        10 => {
            let (one, two) = (block(random, depth - 1, functions), block(random, depth - 1, functions));
            format!(" switch (x & 3) {{ case 0:{one} break; case 2:{two} case 3: {place} = {value}; }}")
        }
        _ => format!(" if (x % 3 == 1) {place} = {value};"),
    }
}

/// The constant keeps a value from being the one just read: such a store would be no change, and may go.
fn expression(random: &mut Random) -> String {
    let place = random.pick(&PLACES);
    match random.below(4) {
        0 => format!("{}", random.below(9)),
        1 => format!("({place} + {})", 1 + random.below(9)),
        2 => format!("(x & 4 ? {place} - 3 : y + {})", 1 + random.below(9)),
        _ => format!("(x * 5 + k + {})", random.below(9)),
    }
}

/// Variables read and written in each round.
#[derive(Default, PartialEq, Eq, Debug)]
struct Round {
    reads: BTreeSet<String>,
    writes: BTreeSet<String>,
}

/// One name per byte: the optimiser may join neighbouring accesses.
fn bytes(variables: &BTreeMap<u64, String>, address: u64, size: u64) -> Vec<String> {
    let name = |byte| variables.range(..=byte).next_back().map(|(base, name)| format!("{name}+{}", byte - base));
    (address..address + size).filter_map(name).collect()
}

fn rounds(shop: &Workshop, level: &str) -> Vec<Round> {
    let log = shop.log_of("a.c", &[level, "-g", "-fno-pie", "-no-pie"], &[]);
    let variables = shop.variables("program");
    let mut rounds = vec![Round::default()];
    for event in log.events() {
        let current = rounds.last_mut().expect("there is always one");
        match event.what.as_str() {
            "load" | "load_range" => current.reads.extend(bytes(&variables, event.address, event.number)),
            "store" | "store_range" => current.writes.extend(bytes(&variables, event.address, event.number)),
            "atomic" => rounds.push(Round::default()),
            _ => {}
        }
    }
    rounds
}

fn compare(plain: &Round, optimised: &Round) -> Result<(), BTreeMap<&'static str, BTreeSet<String>>> {
    let touched: BTreeSet<String> = plain.reads.union(&plain.writes).cloned().collect();
    let seen: BTreeSet<String> = optimised.reads.union(&optimised.writes).cloned().collect();
    let faults = BTreeMap::from([
        ("invented", seen.difference(&touched).cloned().collect::<BTreeSet<_>>()),
        ("hidden writes", plain.writes.difference(&optimised.writes).cloned().collect()),
        ("invented writes", optimised.writes.difference(&plain.writes).cloned().collect()),
        ("hidden reads", plain.reads.difference(&seen).cloned().collect()),
    ]);
    if faults.values().all(|f| f.is_empty()) { Ok(()) } else { Err(faults) }
}

/// Other programs, or more of them, on demand.
fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

#[test]
fn accesses_are_the_same_at_every_level() {
    let first = from_environment("SYMDPOR_SEED", 0);
    for seed in first..first + from_environment("SYMDPOR_PROGRAMS", PROGRAMS) {
        let source = generate(seed);
        let shop = Workshop::single("a.c", &source);
        let plain = rounds(&shop, "-O0");
        for level in ["-O1", "-O2", "-O3"] {
            let optimised = rounds(&shop, level);
            assert_eq!(plain.len(), optimised.len(), "seed {seed} {level}\n{source}");
            for (i, (p, o)) in plain.iter().zip(&optimised).enumerate() {
                if let Err(faults) = compare(p, o) {
                    panic!("seed {seed} {level} round {i}: {faults:?}\n{source}");
                }
            }
        }
    }
}
