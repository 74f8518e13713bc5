//! Programs from some of whose states no end can be reached: a livelock, and said to be one.

use crate::brute;
use crate::compare::{Algorithm, number};
use crate::generate::{Kind, Rng, program};
use crate::run::Outcome;

#[test]
fn livelocks_are_found() {
    let mut rng = Rng::new(number("SYMDPOR_SEED", 1) ^ 0xe9d);
    let (mut compared, mut endless) = ([0; 3], 0);
    for _ in 0..number("SYMDPOR_PROGRAMS", 21_000) / 20 {
        let program = program(&mut rng, Kind::Endless);
        let Some(expected) = brute::is_endless(&program, 600) else { continue };
        // With a race the search owes nothing but the race.
        if brute::outcomes(&program, 600).is_none_or(|o| o.contains(&Outcome::Race)) {
            continue;
        }
        endless += expected as u32;
        for (i, algorithm) in [Algorithm::None, Algorithm::Dpor, Algorithm::Source].into_iter().enumerate() {
            if let Some(found) = algorithm.explore(&program, 150) {
                compared[i] += 1;
                assert_eq!(found.endless, expected, "{algorithm:?} of the program\n{program}");
            }
        }
    }
    println!("{compared:?} programs compared, {endless} with a livelock");
}
