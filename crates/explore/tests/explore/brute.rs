//! The reference of the reference: every state that can be reached, each once, by plain depth-first search.

use crate::machine::State;
use crate::program::Program;
use crate::run::{Outcome, Outcomes};
use rustc_hash::{FxHashMap, FxHashSet};

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
        successors(&state, program, &mut stack, &mut outcomes, false);
    }
    Some(outcomes)
}

/// `early`: that the process ends without an error while others could go on is an outcome too. What they can run into is found in any
/// case.
fn successors(state: &State, program: &Program, stack: &mut Vec<State>, outcomes: &mut Outcomes, early: bool) {
    let mut stuck = true;
    let exits = |t: usize| state.pending(program, t).is_some_and(|op| op.is_quiet_exit());
    let others = (0..state.threads.len()).any(|t| state.enabled(program, t) && !exits(t));
    for t in (0..state.threads.len()).filter(|&t| state.enabled(program, t)) {
        stuck = false;
        if exits(t) && others && !early {
            continue;
        }
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

/// Whether there is a state from which no end can be reached; `None` if there are more states than `limit`.
pub fn is_endless(program: &Program, limit: usize) -> Option<bool> {
    let (state, stop) = State::new(program);
    if stop.is_some() {
        return Some(false);
    }
    let mut numbers = FxHashMap::default();
    let (mut states, mut from, mut ends) = (vec![state.with_small_clocks()], vec![Vec::new()], Vec::new());
    numbers.insert(states[0].clone(), 0usize);
    let mut next = 0;
    while next < states.len() {
        let (mut after, mut outcomes) = (Vec::new(), Outcomes::new());
        successors(&states[next].clone(), program, &mut after, &mut outcomes, true);
        if !outcomes.is_empty() {
            ends.push(next);
        }
        for state in after.iter().map(State::with_small_clocks) {
            let fresh = states.len();
            let number = *numbers.entry(state.clone()).or_insert(fresh);
            if number == fresh {
                states.push(state);
                from.push(Vec::new());
            }
            from[number].push(next);
        }
        if states.len() > limit {
            return None;
        }
        next += 1;
    }
    let mut reaches = vec![false; states.len()];
    while let Some(state) = ends.pop() {
        if !std::mem::replace(&mut reaches[state], true) {
            ends.extend(&from[state]);
        }
    }
    Some(reaches.contains(&false))
}
