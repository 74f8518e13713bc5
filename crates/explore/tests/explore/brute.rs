//! The reference of the reference: every state that can be reached, each once, by plain depth-first search.

use crate::machine::State;
use crate::program::Program;
use crate::run::{Outcome, Outcomes};
use rustc_hash::FxHashSet;

/// All outcomes, or `None` if there are more states than `limit`.
pub fn outcomes(program: &Program, limit: usize) -> Option<Outcomes> {
    let mut outcomes = Outcomes::new();
    let (state, stop) = State::new(program);
    if let Some(stop) = stop {
        outcomes.insert(Outcome::of_stop(&state, 0, stop));
        return Some(outcomes);
    }
    let mut seen = FxHashSet::default();
    let mut stack = vec![state];
    let loops = program.has_loops();
    while let Some(state) = stack.pop() {
        let state = if loops { state.with_small_clocks() } else { state };
        if !seen.insert(state.clone()) {
            continue;
        }
        if seen.len() > limit {
            return None;
        }
        successors(&state, program, &mut stack, &mut outcomes);
    }
    Some(outcomes)
}

fn successors(state: &State, program: &Program, stack: &mut Vec<State>, outcomes: &mut Outcomes) {
    let mut stuck = true;
    for t in (0..state.threads.len()).filter(|&t| state.enabled(program, t)) {
        stuck = false;
        for alternative in 0..state.alternatives(program, t) {
            let mut next = state.clone();
            match next.step(program, t, alternative).stop {
                Some(stop) => {
                    outcomes.insert(Outcome::of_stop(&next, t, stop));
                }
                None => stack.push(next),
            }
        }
    }
    if stuck {
        outcomes.insert(Outcome::of_end(state, program));
    }
}
