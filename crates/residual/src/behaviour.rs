//! Steps by what they do: two have equal ids only if what follows from them is the same, for ever.
//!
//! The graph of steps is minimised as an automaton is, so that copies of code that behave alike are one: a loop whose
//! first round was peeled off, a rotated loop whose condition stands before it and at its end. Each step has a list of
//! locals that it needs, and two steps with equal ids behave alike if the i-th local of one holds what the i-th local
//! of the other holds. (History-dependent automata: Montanari and Pistore, "History-dependent automata: an
//! introduction".)
//!
//! How: strongly connected components, last ones first.
//! - A step that is on no cycle has its text (`signature.rs`) over its successors as id.
//! - In a component with cycles ids start equal and lists empty, and in each round a decision's come from its
//!   successors' of the round before, a plain step's from its successor's of the same round. Rounds so count decisions,
//!   and copies need equally many, wherever blocks begin. Lists only grow at their end, so that they settle. It ends
//!   when a round splits no class and changes no list.
//! - The id is then that of the last round, with a hash of all pairs of ids that component's steps had in the last two
//!   rounds. The text over these ids is remembered, so that a step outside of the component that has the same text gets
//!   the same id, and its list in the same order: that is how a peeled copy is found.
//!
//! Why equal ids mean equal behaviour, across functions too (hashes taken to be injective). Let p and q have equal ids;
//! show that their texts, over the ids and lists of their successors, are equal: then "equal ids" is a bisimulation,
//! and the lists are the bijection of locals. Outside of components, and for what was found by its text, the id stands
//! for such a text. Within components p and q had equal ids in the last round n, so equal texts over round n - 1 (or n,
//! if plain) ids of their successors. The pairs of both components are the same set, in which each id of round n - 1
//! has one partner in round n, as no class was split; so the successors have equal ids in round n as well. Lists are
//! those of round n - 1. So the texts over final ids are equal. (The id of a round is never that of a step outside: along
//! the cycle it is built on the id that all start with, which no finished step has.)
//!
//! Copies that differ in more than names, such as a counter that is 0 in the first, are different. So are two loops one
//! of which is unrolled into a component of another shape than what it leads to. Functions that need too much work have
//! no behaviour here and are compared by `canonical.rs`, under another tag.

use crate::canonical::Written;
use crate::function::Function;
use crate::hash::Structure;
use crate::section::{Rest, Side};
use crate::signature::{Known, Writer};
use crate::steps::Steps;
use crate::uses::{Colours, Uses};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use rustc_hash::FxHashMap;

const CODE: u64 = 9;
const CYCLE: u64 = 10;
const PAIRS: u64 = 11;

/// Locals passed on, per instruction of the function, before it is given up.
const WORK: usize = 400;
const LEAST_WORK: usize = 200_000;

/// Decisions that the order of operands looks ahead.
const COLOUR_ROUNDS: usize = 4;

pub struct Behaviour {
    steps: Steps,
    known: Vec<Known>,
}

impl Behaviour {
    pub fn of(function: &Function) -> Option<Behaviour> {
        let steps = Steps::of(function)?;
        let known = Minimiser::new(function, &steps).run()?;
        Some(Behaviour { steps, known })
    }

    /// The code of a point. None if the point is not where a step begins.
    pub fn write(&self, rest: &Rest<'_>) -> Option<Written> {
        let step = self.steps.at(rest.function, rest.point.instruction)?;
        let under_way = || Writer::new(rest.function, &self.steps).under_way(step, &self.known);
        let known = if rest.side == Side::Before { self.known[step].clone() } else { under_way() };
        let mut text = Structure::new(CODE);
        text.wide(known.id);
        Some(Written { text, met: known.needs, comparable: !known.opaque, exact: true })
    }
}

struct Minimiser<'a> {
    steps: &'a Steps,
    writer: Writer<'a>,
    known: Vec<Known>,
    /// Steps on cycles by text over final ids, and where in the text's order each local of its list is.
    texts: FxHashMap<u128, (u128, Vec<usize>)>,
    /// Of the steps of the component at hand.
    colours: FxHashMap<usize, Colours>,
    function: &'a Function,
    limit: usize,
}

impl<'a> Minimiser<'a> {
    fn new(function: &'a Function, steps: &'a Steps) -> Minimiser<'a> {
        Minimiser {
            steps,
            writer: Writer::new(function, steps),
            known: vec![Known::default(); steps.all.len()],
            texts: FxHashMap::default(),
            colours: FxHashMap::default(),
            function,
            limit: LEAST_WORK + WORK * function.instructions.len(),
        }
    }

    fn run(mut self) -> Option<Vec<Known>> {
        for component in kosaraju_scc(&self.graph()) {
            let component: Vec<usize> = component.into_iter().map(NodeIndex::index).collect();
            match component[..] {
                [step] if self.steps.all[step].edges.iter().all(|e| e.target != step) => self.single(step),
                _ => self.cycle(component)?,
            }
            if self.writer.work > self.limit {
                return None;
            }
        }
        Some(self.known)
    }

    fn graph(&self) -> DiGraph<(), ()> {
        let mut graph = DiGraph::new();
        self.steps.all.iter().for_each(|_| _ = graph.add_node(()));
        for (from, step) in self.steps.all.iter().enumerate() {
            for edge in &step.edges {
                graph.add_edge(NodeIndex::new(from), NodeIndex::new(edge.target), ());
            }
        }
        graph
    }

    /// Over what is known of the successors, and of itself if it is on a cycle.
    fn text(&mut self, step: usize, on_cycle: bool) -> Known {
        let (needs, colours) =
            if on_cycle { (&self.known[step].needs[..], self.colours.get(&step)) } else { (&[][..], None) };
        self.writer.step(step, needs, colours, &self.known)
    }

    fn single(&mut self, step: usize) {
        let mut known = self.text(step, false);
        if let Some((id, places)) = self.texts.get(&known.id) {
            known.id = *id;
            known.needs = places.iter().map(|&i| known.needs[i]).collect();
        }
        self.known[step] = known;
    }

    /// For copies outside of the cycle, to which nothing is known of what they need.
    fn remember(&mut self, step: usize) {
        let text = self.text(step, false);
        let order: FxHashMap<u32, usize> = text.needs.into_iter().enumerate().map(|(i, local)| (local, i)).collect();
        let known = &self.known[step];
        let places: Option<Vec<usize>> = known.needs.iter().map(|local| order.get(local).copied()).collect();
        if let Some(places) = places.filter(|p| p.len() == order.len()) {
            self.texts.insert(text.id, (known.id, places));
        }
    }

    fn cycle(&mut self, component: Vec<usize>) -> Option<()> {
        let order = Order::of(self.steps, component);
        self.colour(&order)?;
        let pairs = loop {
            let before = self.round(&order);
            if self.writer.work > self.limit {
                return None;
            }
            if let Some(pairs) = self.stable(&order, &before) {
                break pairs;
            }
        };
        let opaque = order.steps().any(|i| self.known[i].opaque);
        for step in order.steps() {
            let mut id = Structure::new(CYCLE);
            id.wide(pairs);
            id.wide(self.known[step].id);
            self.known[step].id = id.finish();
            self.known[step].opaque = opaque;
        }
        order.steps().for_each(|step| self.remember(step));
        Some(())
    }

    /// How each step of a component uses its locals, a few decisions deep.
    fn colour(&mut self, order: &Order) -> Option<()> {
        self.colours = order.steps().map(|step| (step, Colours::default())).collect();
        for _ in 0..COLOUR_ROUNDS {
            let decided: Vec<Colours> = order.decisions.iter().map(|&i| self.used(i)).collect();
            order.decisions.iter().zip(decided).for_each(|(&i, colours)| _ = self.colours.insert(i, colours));
            for &step in &order.plain {
                let colours = self.used(step);
                self.colours.insert(step, colours);
            }
            self.writer.work += self.colours.values().map(Colours::len).sum::<usize>();
            if self.writer.work > self.limit {
                return None;
            }
        }
        Some(())
    }

    fn used(&self, step: usize) -> Colours {
        let mut uses = Uses::new(self.function, self.steps);
        let step = &self.steps.all[step];
        uses.parts(step);
        for (i, edge) in step.edges.iter().enumerate() {
            match self.colours.get(&edge.target) {
                Some(colours) => uses.edge(i, edge, colours.iter().map(|(&local, &colour)| (local, colour))),
                None => {
                    let needs = self.known[edge.target].needs.iter().enumerate();
                    uses.edge(i, edge, needs.map(|(place, &local)| (local, place as u64)));
                }
            }
        }
        if let Some(result) = step.instruction.and_then(|i| self.function.instructions[i].result) {
            // Uses before it is assigned are the only ones that count, and there are none in what a compiler writes.
            uses.found.remove(&result);
        }
        uses.found
    }

    /// What was known before, in the order of the component's steps.
    fn round(&mut self, order: &Order) -> Vec<Known> {
        let decided: Vec<Known> = order.decisions.iter().map(|&i| self.text(i, true)).collect();
        let mut before = Vec::new();
        for (&step, known) in order.decisions.iter().zip(decided) {
            before.push(std::mem::replace(&mut self.known[step], known));
        }
        for &step in &order.plain {
            let known = self.text(step, true);
            before.push(std::mem::replace(&mut self.known[step], known));
        }
        before
    }

    /// A hash of all pairs of ids before and now, if no class was split and no list has changed.
    fn stable(&self, order: &Order, before: &[Known]) -> Option<u128> {
        let mut pairs = FxHashMap::default();
        for (step, before) in order.steps().zip(before) {
            let now = &self.known[step];
            if now.needs != before.needs || *pairs.entry(before.id).or_insert(now.id) != now.id {
                return None;
            }
        }
        let mut pairs: Vec<(u128, u128)> = pairs.into_iter().collect();
        pairs.sort_unstable();
        let mut hash = Structure::new(PAIRS);
        hash.word(pairs.len() as u64);
        for (before, now) in pairs {
            hash.wide(before);
            hash.wide(now);
        }
        Some(hash.finish())
    }
}

/// The steps of a component in the order in which a round takes them.
struct Order {
    /// Taken all at once. If there is none, the component is a ring, and all its steps are.
    decisions: Vec<usize>,
    /// Each behind the one that follows it.
    plain: Vec<usize>,
}

impl Order {
    fn of(steps: &Steps, component: Vec<usize>) -> Order {
        let decides = |&i: &usize| steps.all[i].edges.len() > 1;
        let (decisions, others): (Vec<usize>, Vec<usize>) = component.into_iter().partition(decides);
        if decisions.is_empty() {
            return Order { decisions: others, plain: Vec::new() };
        }
        let mut before: FxHashMap<usize, Vec<usize>> = FxHashMap::default();
        for &step in &others {
            before.entry(steps.all[step].edges[0].target).or_default().push(step);
        }
        let mut plain: Vec<usize> = Vec::with_capacity(others.len());
        let mut work = decisions.clone();
        while let Some(step) = work.pop() {
            let found = before.remove(&step).unwrap_or_default();
            plain.extend(&found);
            work.extend(found);
        }
        Order { decisions, plain }
    }

    fn steps(&self) -> impl Iterator<Item = usize> {
        self.decisions.iter().chain(&self.plain).copied()
    }
}
