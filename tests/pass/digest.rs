//! The IR digest can be read as docs/digest.md says, and the slots hold what it says they hold.

use crate::harness::{LEVELS, Log, Workshop};

/// A reader of LEB128 numbers that fails at the end.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.bytes.split_first().expect("the digest goes on");
        self.bytes = rest;
        first
    }

    fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0u64, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f).checked_shl(shift).expect("a number of at most 64 bits");
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    fn count(&mut self) -> usize {
        self.number() as usize
    }

    fn take(&mut self, len: usize) -> Reader<'a> {
        let (mine, rest) = self.bytes.split_at(len);
        self.bytes = rest;
        Reader { bytes: mine }
    }

    /// Operand; the local's number if it is one.
    fn operand(&mut self) -> Option<u64> {
        match self.byte() {
            0 => return Some(self.number()),
            1 | 2 => {
                self.number();
                (0..self.count()).for_each(|_| _ = self.number());
            }
            3 => {
                assert!(self.byte() < 2);
                self.number();
            }
            4..=6 | 12 => _ = self.number(),
            7 => {
                (0..3).for_each(|_| _ = self.number());
                (0..self.count()).for_each(|_| _ = self.operand());
            }
            8 => {
                self.number();
                (0..self.count()).for_each(|_| _ = self.operand());
            }
            9 => {
                self.number();
                self.number();
            }
            10 => {}
            11 => {
                self.number();
                let len = self.count();
                self.take(len);
            }
            other => panic!("operand tag {other}"),
        }
        None
    }
}

/// A suspension point: its sites, and (local, whether live after, slot) for each live local.
struct Point {
    sites: Vec<u64>,
    live: Vec<(u64, bool, Option<u64>)>,
}

struct Function {
    index: u64,
    arguments: usize,
    values: u64,
    /// Kind, size and slot.
    objects: Vec<(u8, u64, Option<u64>)>,
    blocks: usize,
    points: Vec<Point>,
}

const PHI: u64 = 44;
const VOID: u64 = 0;

fn parse(digest: &[u8]) -> Vec<Function> {
    let mut reader = Reader { bytes: digest };
    assert_eq!(reader.byte(), 3, "version");
    let kinds: Vec<u64> = (0..reader.count()).map(|i| type_kind(&mut reader, i as u64)).collect();
    let functions = (0..reader.count()).map(|_| function(&mut reader, &kinds)).collect();
    assert!(reader.bytes.is_empty(), "nothing is left over");
    functions
}

/// Parts of a type come before it.
fn type_kind(reader: &mut Reader, own: u64) -> u64 {
    let kind = reader.number();
    reader.number();
    for _ in 0..reader.count() {
        assert!(reader.number() < own);
    }
    kind
}

fn function(reader: &mut Reader, kinds: &[u64]) -> Function {
    let index = reader.number();
    let len = reader.count();
    let mut body = reader.take(len);
    let arguments = body.count();
    (0..arguments).for_each(|_| assert!(body.count() < kinds.len()));
    let objects = (0..body.count()).map(|_| object(&mut body)).collect();
    (0..body.count()).for_each(|_| _ = (body.number(), body.number()));
    let blocks = body.count();
    let mut found = Function { index, arguments, values: arguments as u64, objects, blocks, points: Vec::new() };
    for _ in 0..blocks {
        (0..body.count()).for_each(|_| instruction(&mut body, kinds, &mut found));
    }
    assert!(body.bytes.is_empty(), "the body has its length");
    let locals = found.values + found.objects.len() as u64;
    assert!(found.points.iter().flat_map(|p| &p.live).all(|l| l.0 < locals));
    found
}

fn object(body: &mut Reader) -> (u8, u64, Option<u64>) {
    body.number();
    (body.byte(), body.number(), body.number().checked_sub(1))
}

fn instruction(body: &mut Reader, kinds: &[u64], function: &mut Function) {
    let opcode = body.number();
    let ty = body.count();
    function.values += u64::from(kinds[ty] != VOID);
    body.number();
    assert!(body.count() <= kinds.len());
    let operands = body.count();
    (0..operands).for_each(|_| _ = body.operand());
    if opcode == PHI {
        (0..operands).for_each(|_| assert!(body.count() < function.blocks));
    }
    let sites: Vec<u64> = (0..body.count()).map(|_| body.number()).collect();
    if !sites.is_empty() {
        let live = (0..body.count()).map(|_| live(body)).collect();
        function.points.push(Point { sites, live });
    }
}

fn live(body: &mut Reader) -> (u64, bool, Option<u64>) {
    let local = body.number();
    (local >> 3, local & 1 != 0, body.number().checked_sub(1))
}

fn points_at(log: &Log, site: u32) -> Vec<Point> {
    let functions = log.digests().iter().flat_map(|d| parse(d)).collect::<Vec<_>>();
    functions.into_iter().flat_map(|f| f.points).filter(|p| p.sites.contains(&site.into())).collect()
}

#[test]
fn well_formed_for_a_large_program() {
    let shop = Workshop::single("a.cpp", include_str!("large.cpp"));
    shop.build(&["a.cpp", "-O2", "-g", "-std=c++20", "-o", "program"]);
    let (_, log) = shop.observe("program", &[]);
    let functions = parse(&log.digests()[0]);
    assert!(functions.len() > 100);
    let main = functions.iter().find(|f| log.functions()[f.index as usize].0 == "main").expect("main is there");
    assert!(main.points.len() > 50 && main.blocks > 20 && main.arguments == 0);
    let sites: Vec<u64> = functions.iter().flat_map(|f| &f.points).flat_map(|p| p.sites.clone()).collect();
    let distinct: std::collections::HashSet<u64> = sites.iter().copied().collect();
    assert_eq!(sites.len(), distinct.len(), "a site names its point");
}

/// At an atomic access in `f`, what is still needed is in the frame; what is not, is not listed.
#[test]
fn slots_hold_live_values() {
    let source = "#include <stdatomic.h>\n#include <stdio.h>\natomic_int a;\n\
        __attribute__((noinline)) long f(long needed, long done, double real) {\n  printf(\"%ld\\n\", done);\n  \
        atomic_store(&a, 1);\n  return needed + (long)real;\n}\nint main() { return f(0x1234567, 0x7654321, 2.0) == 0x1234569 ? 0 : 1; }";
    let shop = Workshop::single("a.c", source);
    for level in LEVELS {
        let log = shop.log_of("a.c", &[level, "-g"], &[]);
        let event = &log.on("atomic", "a")[0];
        let points = points_at(&log, event.site);
        assert_eq!(points.len(), 1, "{level}");
        let values: Vec<u64> =
            points[0].live.iter().filter_map(|l| l.2).map(|slot| event.slots[slot as usize]).collect();
        if level == "-O0" {
            // Everything lives in allocas there: two of them are live, and their slots hold addresses.
            assert_eq!(points[0].live.iter().filter(|l| l.1).count(), 2, "{level}");
        } else {
            assert!(points[0].live.iter().all(|l| l.1), "{level}: all of it is needed afterwards too");
            assert!(values.contains(&0x1234567), "{level}: {values:x?}");
            assert!(values.contains(&2.0f64.to_bits()), "{level}: {values:x?}");
            assert!(!values.contains(&0x7654321), "{level}: {values:x?}");
        }
    }
}

#[test]
fn objects_are_registered() {
    let source = "#include <stdatomic.h>\natomic_int a; void *volatile sink;\nstruct wide { long x[4]; };\n\
        __attribute__((noinline)) void use(struct wide *w) { sink = w; }\n\
        int main(int n, char **v) {\n  struct wide w = {{n}};\n  use(&w);\n  atomic_store(&a, 1);\n  return w.x[0] - n;\n}";
    let shop = Workshop::single("a.c", source);
    for level in LEVELS {
        let log = shop.log_of("a.c", &[level, "-g"], &[]);
        let functions = parse(&log.digests()[0]);
        let main = functions.iter().find(|f| log.functions()[f.index as usize].0 == "main").expect("main is there");
        let escaped: Vec<_> = main.objects.iter().filter(|o| o.0 == 2).collect();
        assert_eq!(escaped.len(), 1, "{level}");
        assert_eq!(escaped[0].1, 32, "{level}: its size");
        assert!(escaped[0].2.is_some(), "{level}: its address is in a slot");
    }
}
