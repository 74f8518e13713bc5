//! The search through all states.

use super::*;
use std::collections::{BTreeSet, HashMap};

/// All outcomes, or none if there are too many states.
pub fn outcomes(program: &Program, most_states: usize) -> Option<BTreeSet<Outcome>> {
    let mut search = Search {
        program,
        numbers: HashMap::new(),
        comes_from: Vec::new(),
        ends: Vec::new(),
        outcomes: BTreeSet::new(),
    };
    let mut initial = initial();
    let mut work = Vec::new();
    match run_on(program, &mut initial, 0) {
        Ok(()) => search.meet(initial, None, &mut work),
        Err(outcome) => drop(search.outcomes.insert(outcome)),
    }
    while let Some((number, state)) = work.pop() {
        if search.numbers.len() >= most_states {
            return None;
        }
        search.successors(number, &state, &mut work);
    }
    if search.comes_to_nothing() {
        search.outcomes.insert(Outcome::Deadlock);
    }
    Some(search.outcomes)
}

impl State {
    /// Numbers each thread's times anew from 0: a loop that comes back is in the same state again.
    fn normalise(&mut self) {
        let mut clocks: Vec<&mut Clock> = Vec::new();
        for thread in &mut self.threads {
            clocks.extend([&mut thread.clock, &mut thread.fenced, &mut thread.seen]);
        }
        clocks.extend(self.released.iter_mut().chain(&mut self.reads).chain(&mut self.locks));
        clocks.extend(self.shared.clocks());
        for t in 0..THREADS {
            let written = self.writes.iter().flatten().filter(|w| w.0 == t).map(|w| w.1);
            let times: BTreeSet<u8> = clocks.iter().map(|c| c[t]).chain(written).chain([0]).collect();
            let rank = |time: u8| times.range(..time).count() as u8;
            clocks.iter_mut().for_each(|c| c[t] = rank(c[t]));
            self.writes.iter_mut().flatten().filter(|w| w.0 == t).for_each(|w| w.1 = rank(w.1));
        }
    }
}

struct Search<'a> {
    program: &'a Program,
    numbers: HashMap<State, usize>,
    /// Of each state those before it, and those in which the execution may end.
    comes_from: Vec<Vec<usize>>,
    ends: Vec<usize>,
    outcomes: BTreeSet<Outcome>,
}

impl Search<'_> {
    fn meet(&mut self, mut state: State, from: Option<usize>, work: &mut Vec<(usize, State)>) {
        state.normalise();
        let next = self.numbers.len();
        let number = *self.numbers.entry(state.clone()).or_insert(next);
        if number == next {
            self.comes_from.push(Vec::new());
            work.push((number, state));
        }
        self.comes_from[number].extend(from);
    }

    fn successors(&mut self, number: usize, state: &State, work: &mut Vec<(usize, State)>) {
        let mut stuck = true;
        for thread in 0..self.program.threads.len() {
            for alternative in 0..alternatives(self.program, state, thread) {
                stuck = false;
                let mut next = state.clone();
                match transition(self.program, &mut next, thread, alternative) {
                    Ok(()) => self.meet(next, Some(number), work),
                    Err(outcome) => {
                        self.outcomes.insert(outcome);
                        self.ends.push(number);
                    }
                }
            }
        }
        if stuck {
            self.outcomes.insert(Outcome::Deadlock);
            self.ends.push(number);
        }
    }

    /// Whether there is a state from which no end can be reached.
    fn comes_to_nothing(&self) -> bool {
        let mut reaches = vec![false; self.comes_from.len()];
        let mut work = self.ends.clone();
        while let Some(state) = work.pop() {
            if !std::mem::replace(&mut reaches[state], true) {
                work.extend(&self.comes_from[state]);
            }
        }
        reaches.contains(&false)
    }
}
