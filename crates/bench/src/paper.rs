//! The tables of Yang, Chen, Gopalakrishnan and Wang, "Automatic Discovery of Transition Symmetry in Multithreaded Programs
//! using Dynamic Analysis" (SPIN 2009), as printed. Their machine was a Pentium D at 2.8 GHz, and every access to shared memory was a
//! transition there, so what compares are the ratios of their columns, not the figures.

use serde::Serialize;

/// A search of table 1.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Figures {
    pub time_s: f64,
    pub executions: u64,
    pub transitions: u64,
}

/// A row of table 1; without figures where the search was given up after a day.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Compared {
    pub program: &'static str,
    pub threads: u32,
    pub dpor: Option<Figures>,
    pub symmetry: Figures,
}

/// A row of table 2.
#[derive(Serialize, Clone, Copy, PartialEq, Debug)]
pub struct Overhead {
    pub program: &'static str,
    pub threads: u32,
    pub executions: u64,
    pub total_s: f64,
    /// Getting at the local states of threads.
    pub probing_s: f64,
    /// Residual code and bijections.
    pub bijection_s: f64,
    pub asked: u64,
    pub skipped: u64,
}

/// When they gave up, in seconds.
pub const GIVEN_UP: f64 = 86_400.0;

const fn figures(time_s: f64, executions: u64, transitions: u64) -> Figures {
    Figures { time_s, executions, transitions }
}

const fn row(program: &'static str, threads: u32, dpor: Option<Figures>, symmetry: Figures) -> Compared {
    Compared { program, threads, dpor, symmetry }
}

pub const TABLE_1: &[Compared] = &[
    row("aget-buggy", 4, Some(figures(29107.0, 1_009_010, 30_233_023)), figures(16.0, 420, 19_084)),
    row("aget-buggy", 5, None, figures(37.0, 926, 32_485)),
    row("aget", 4, None, figures(18.0, 462, 16_263)),
    row("aget", 5, None, figures(258.0, 6_006, 211_256)),
    row("aget", 6, None, figures(2_579.0, 87_516, 3_117_152)),
    row("pfscan-buggy", 3, Some(figures(2.0, 120, 1_980)), figures(1.0, 71, 1_206)),
    row("pfscan-buggy", 4, Some(figures(389.0, 28_079, 428_410)), figures(50.0, 3_148, 50_296)),
    row("pfscan", 3, Some(figures(21.0, 1_096, 18_006)), figures(3.0, 136, 2_334)),
    row("pfscan", 4, Some(figures(64_067.0, 4_184_546, 64_465_088)), figures(155.0, 7_111, 85_074)),
    row("pfscan", 5, None, figures(5_147.0, 322_695, 5_373_766)),
];

const fn overhead(program: &'static str, threads: u32, executions: u64, times: [f64; 3], calls: [u64; 2]) -> Overhead {
    let [total_s, probing_s, bijection_s] = times;
    let [asked, skipped] = calls;
    Overhead { program, threads, executions, total_s, probing_s, bijection_s, asked, skipped }
}

pub const TABLE_2: &[Overhead] = &[
    overhead("pfscan-buggy", 3, 71, [1.0, 0.05, 0.01], [103, 29]),
    overhead("pfscan-buggy", 4, 3_148, [50.0, 0.35, 0.04], [2_613, 230]),
    overhead("pfscan", 3, 136, [3.18, 0.04, 0.02], [207, 51]),
    overhead("pfscan", 4, 7_111, [155.3, 1.92, 0.48], [11_326, 3_275]),
    overhead("pfscan", 5, 322_695, [5_147.0, 81.41, 20.03], [1_685_733, 544_816]),
];

pub fn compared(program: &str, threads: u32) -> Option<&'static Compared> {
    TABLE_1.iter().find(|r| r.program == program && r.threads == threads)
}

pub fn overhead_of(program: &str, threads: u32) -> Option<&'static Overhead> {
    TABLE_2.iter().find(|r| r.program == program && r.threads == threads)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_tell_of_the_same_searches() {
        for row in TABLE_2 {
            let same = compared(row.program, row.threads).unwrap();
            assert_eq!(same.symmetry.executions, row.executions);
            assert!((same.symmetry.time_s - row.total_s).abs() < 1.0);
        }
    }
}
