//! The search tree along the current execution: per state, what has been and what has to be explored from there.
//!
//! The stack of nodes is one node per step of the current execution. The search goes back to the last node that has something
//! left, and that is the only place where a branch is taken or left out (`reduction`).
//!
//! A thread whose branch has been explored *sleeps* in the node and below it, until a step depends on its operation
//! (Godefroid). The worker does the same from the plan's sleep set. It knows the pending operation where the tree knows how that
//! turned out, and is told only whether it failed, so it may wake a thread earlier (whose wait on a futex found another value, say);
//! then a step of a thread that should sleep is found in the trace, and that thread is awake from there on.

mod foresee;

use crate::estimate::{Effort, Estimate};
use symdpor_abi::op::{Op, OpKind, dependent};
use symdpor_trace::saved::{Reader, Saved};
use symdpor_trace::{Choice, End, Plan, Step, ThreadId, ThreadSet, saved};

/// A state of the current execution.
#[derive(Default)]
pub struct Node {
    pub enabled: ThreadSet,
    /// Threads to be explored from here, explored or not.
    pub backtrack: ThreadSet,
    /// Those of them that others are to run for if they cannot.
    required: ThreadSet,
    /// Threads asleep here, those explored from here included.
    pub sleep: ThreadSet,
    /// Threads whose branch has been taken, the current one included.
    done: ThreadSet,
    /// The operation of the current branch, and the number of ways it can go, once it has been seen.
    op: Option<Op>,
    alternatives: u16,
    /// The current branch ended in an error, in one of its ways: what the thread would have done after it was not seen.
    cut: bool,
    /// The current branch is a turn in vain.
    in_vain: bool,
    /// An execution came back to this state.
    repeated: bool,
    /// An execution from here came to an end, or back to a state above.
    ends: bool,
    /// A branch from here was more than a turn in vain.
    fruitful: bool,
    /// Its sleepers: those inherited, and those explored here.
    inherited: (usize, usize),
    own: (usize, usize),
    effort: Effort,
}

#[derive(Clone, Copy)]
struct Sleeper {
    thread: ThreadId,
    op: Op,
    /// The node where it was explored.
    since: u32,
    /// All that it did there was to come round to where it was.
    in_vain: bool,
}

impl Node {
    /// Whether the thread sleeps here for what was done elsewhere.
    fn sleeps_by_inheritance(&self, thread: ThreadId) -> bool {
        self.sleep.contains(thread) && !self.done.contains(thread)
    }
}

/// Whether an event changes all that an operation touches which its thread does come what may, or at least tries to.
fn changes_all_of(op: &Op, event: &Op) -> bool {
    let certain = matches!(op.kind, OpKind::MutexLock | OpKind::RwRead | OpKind::RwWrite)
        || matches!(op.kind, OpKind::AtomicLoad | OpKind::AtomicStore | OpKind::AtomicRmw);
    let changes =
        |(object, mask, _)| event.accesses().any(|(o, m, access)| o == object && m & mask == mask && access.changes());
    certain && op.only_access().is_some_and(changes)
}

pub struct Tree {
    /// The first `choices.len()` are in use. The others keep their memory.
    nodes: Vec<Node>,
    /// The current branch of each node.
    choices: Vec<Choice>,
    sleepers: Vec<Sleeper>,
    use_sleep: bool,
    /// See [`Tree::take_endless`].
    endless: Vec<Vec<Choice>>,
    estimate: Estimate,
}

impl Tree {
    pub fn new(use_sleep: bool) -> Tree {
        let (sleepers, endless, estimate) = (Vec::new(), Vec::new(), Estimate::default());
        Tree { nodes: Vec::new(), choices: Vec::new(), sleepers, use_sleep, endless, estimate }
    }

    pub fn depth(&self) -> usize {
        self.choices.len()
    }

    /// Whether a thread could go on before the step at a position.
    pub fn was_enabled(&self, position: usize, thread: ThreadId) -> bool {
        self.nodes.get(position).is_some_and(|n| n.enabled.contains(thread))
    }

    pub fn node_mut(&mut self, position: usize) -> &mut Node {
        &mut self.nodes[position]
    }

    /// The position of the first step of `steps` that is new. `None` if they do not follow the plan, so that nothing can be
    /// learnt from them.
    pub fn first_new(&self, steps: &[Step]) -> Option<usize> {
        let Some((last, branch)) = self.choices.last().zip(self.choices.len().checked_sub(1)) else { return Some(0) };
        steps.get(branch).filter(|s| s.thread == last.thread).map(|_| branch)
    }

    /// Adds a step. The first new one is that of the branch taken by [`Tree::branch`], the others make new nodes, from which
    /// only their own thread is to be explored.
    pub fn push(&mut self, position: usize, step: &Step) -> &mut Node {
        let choice = Choice { thread: step.thread, alternative: step.alternative };
        if position == self.choices.len() {
            self.open(position, step);
            self.choices.push(choice);
        }
        let node = &mut self.nodes[position];
        node.op = Some(step.op);
        node.alternatives = step.alternatives;
        (node.in_vain, node.fruitful) = (false, true);
        node
    }

    /// The last node's current branch is a turn in vain: its thread comes round to where it was. `fruitful`: whether another branch
    /// of the node was more than that.
    pub fn in_vain(&mut self, position: usize, fruitful: bool) {
        let thread = self.choices[position].thread;
        let node = &mut self.nodes[position];
        (node.in_vain, node.fruitful) = (true, fruitful);
        if node.required.contains(thread) {
            node.backtrack.union_with(&node.enabled);
        }
    }

    /// Nothing has been explored from a new node after all.
    pub fn begin_anew(&mut self, position: usize) {
        self.nodes[position].fruitful = false;
    }

    /// Whether something other than turns in vain has been explored from a node.
    pub fn is_fruitful(&self, position: usize) -> bool {
        self.nodes.get(position).is_some_and(|n| n.fruitful)
    }

    /// Whether a thread sleeps in the last node because all it could do is to come round in vain.
    pub fn sleeps_in_vain(&self, position: usize, thread: ThreadId) -> bool {
        self.sleepers_of(position).any(|s| s.thread == thread && s.in_vain)
    }

    fn sleepers_of(&self, position: usize) -> impl Iterator<Item = &Sleeper> {
        let node = &self.nodes[position];
        let inherited = &self.sleepers[node.inherited.0..node.inherited.1];
        let asleep = inherited.iter().filter(|s| node.sleep.contains(s.thread));
        asleep.chain(&self.sleepers[node.own.0..node.own.1])
    }

    /// Whether nobody could do anything in the last node but come round in vain.
    pub fn is_all_in_vain(&self, position: usize) -> bool {
        self.nodes[position].enabled.iter().all(|t| self.sleeps_in_vain(position, t))
    }

    /// The execution ended in an error at its last event: its thread does not sleep afterwards, for what would have come after
    /// that event has not been explored.
    pub fn cut(&mut self, event: usize) {
        let nodes = &mut self.nodes[..self.choices.len()];
        nodes.iter_mut().skip(event).for_each(|node| node.cut = true);
    }

    fn open(&mut self, position: usize, step: &Step) {
        if self.nodes.len() == position {
            self.nodes.push(Node::default());
        }
        self.nodes[position].sleep.clear();
        let inherited = if self.use_sleep && position > 0 { self.inherit(position) } else { (0, 0) };
        let node = &mut self.nodes[position];
        node.enabled.clone_from(&step.enabled);
        node.backtrack.clear();
        node.backtrack.insert(step.thread);
        node.required.clear();
        node.done.clear();
        node.done.insert(step.thread);
        node.sleep.remove(step.thread);
        (node.cut, node.repeated, node.ends, node.fruitful) = (false, false, false, false);
        node.inherited = inherited;
        node.own = (self.sleepers.len(), self.sleepers.len());
        node.effort = self.estimate.open();
    }

    /// The sleepers of a new node: those of the node before that its step has not woken.
    fn inherit(&mut self, position: usize) -> (usize, usize) {
        let [parent, node] = &mut self.nodes[position - 1..=position] else { return (0, 0) };
        let step_thread = self.choices[position - 1].thread;
        let step = parent.op;
        let stays = |s: &Sleeper| s.thread != step_thread && !step.is_some_and(|op| dependent(&op, &s.op));
        let start = self.sleepers.len();
        for i in (parent.inherited.0..parent.inherited.1).chain(parent.own.0..parent.own.1) {
            let sleeper = self.sleepers[i];
            let awake = i < parent.own.0 && parent.done.contains(sleeper.thread);
            if !awake && stays(&sleeper) {
                node.sleep.insert(sleeper.thread);
                self.sleepers.push(sleeper);
            }
        }
        let same = self.sleepers.len() - start == parent.inherited.1 - parent.inherited.0;
        let all_stay = same && parent.own.0 == parent.own.1;
        if all_stay {
            self.sleepers.truncate(start);
            return parent.inherited;
        }
        (start, self.sleepers.len())
    }

    /// The last node's current branch: its thread, and its operation if it has been seen.
    pub fn current(&self, position: usize) -> (ThreadId, Option<Op>) {
        (self.choices[position].thread, self.nodes[position].op)
    }

    /// Which way the last node's current branch goes.
    pub fn alternative(&self, position: usize) -> u16 {
        self.choices[position].alternative
    }

    /// How many ways there are.
    pub fn alternatives(&self, position: usize) -> u16 {
        self.nodes[position].alternatives
    }

    /// Another way for the operation of the last node's current branch.
    pub fn next_alternative(&mut self, position: usize) -> bool {
        let node = &mut self.nodes[position];
        self.sleepers.truncate(node.own.1);
        let next = self.choices[position].alternative.checked_add(1);
        let next = next.filter(|&a| a < node.alternatives && node.op.is_some());
        let Some(alternative) = next else { return false };
        self.estimate.finish_branch(&mut node.effort);
        self.choices[position].alternative = alternative;
        true
    }

    /// The last node's current branch has been explored in all ways.
    pub fn finish_branch(&mut self, position: usize) {
        let thread = self.choices[position].thread;
        if let Some(op) = self.nodes[position].op.take().filter(|_| !self.nodes[position].cut) {
            let in_vain = self.nodes[position].in_vain;
            self.put_to_sleep(position, thread, op, in_vain);
        }
    }

    fn put_to_sleep(&mut self, position: usize, thread: ThreadId, op: Op, in_vain: bool) {
        if self.use_sleep {
            let node = &mut self.nodes[position];
            self.sleepers.truncate(node.own.1);
            self.sleepers.push(Sleeper { thread, op, since: position as u32, in_vain });
            node.own.1 = self.sleepers.len();
            node.sleep.insert(thread);
        }
    }

    /// A thread to be explored from the last node.
    pub fn candidate(&self, position: usize) -> Option<ThreadId> {
        let node = &self.nodes[position];
        node.backtrack.first_outside(&node.done, &node.sleep)
    }

    /// Whether the current branch of a node has ways that are left.
    fn has_more_ways(&self, position: usize) -> bool {
        self.choices[position].alternative + 1 < self.nodes[position].alternatives
    }

    /// Explores a thread from the last node next.
    pub fn take(&mut self, position: usize, thread: ThreadId) {
        let node = &mut self.nodes[position];
        node.backtrack.insert(thread);
        node.done.insert(thread);
        node.sleep.remove(thread);
        (node.op, node.alternatives, node.cut) = (None, 0, false);
        self.estimate.finish_branch(&mut node.effort);
        self.choices[position] = Choice { thread, alternative: 0 };
    }

    /// Leaves out a thread's branch from the last node, which would begin with `op`. `elsewhere`: for what was explored from
    /// another node. `twin`: whose branch was explored.
    pub fn leave_out(&mut self, position: usize, (thread, twin): (ThreadId, ThreadId), op: Op, elsewhere: bool) {
        let in_vain = self.sleeps_in_vain(position, twin);
        let node = &mut self.nodes[position];
        if elsewhere {
            node.done.remove(thread);
            node.sleep.insert(thread);
        } else {
            node.done.insert(thread);
        }
        self.put_to_sleep(position, thread, op, in_vain);
    }

    /// The threads that sleep in a node since they were explored from nodes above it.
    pub fn inherited(&self, position: usize, sleepers: &mut Vec<(ThreadId, usize)>) {
        let node = &self.nodes[position];
        let inherited = &self.sleepers[node.inherited.0..node.inherited.1];
        let asleep = inherited.iter().filter(|s| node.sleeps_by_inheritance(s.thread));
        sleepers.extend(asleep.map(|s| (s.thread, s.since as usize)));
    }

    /// A thread that is awake in the last node.
    pub fn awake(&self, position: usize) -> Option<ThreadId> {
        let node = &self.nodes[position];
        node.enabled.first_outside(&node.done, &node.sleep)
    }

    /// Has `thread` run from a node, or whoever can run if it cannot, be it that it would come round in vain, or has been explored
    /// from a node above.
    pub fn require(&mut self, position: usize, thread: ThreadId) {
        if self.sleeps_for_race(position, thread) {
            return;
        }
        let may_run = self.may_run(position, thread);
        let node = &mut self.nodes[position];
        if may_run {
            node.backtrack.insert(thread);
            node.required.insert(thread);
        } else {
            node.backtrack.union_with(&node.enabled);
        }
    }

    /// Whether [`Tree::require`] would change nothing that counts.
    pub fn is_required(&self, position: usize, thread: ThreadId) -> bool {
        let node = &self.nodes[position];
        let runs = || node.required.contains(thread) && node.backtrack.contains(thread);
        node.backtrack.contains_all(&node.enabled)
            || runs() && self.may_run(position, thread)
            || self.sleeps_for_race(position, thread)
    }

    fn may_run(&self, position: usize, thread: ThreadId) -> bool {
        let node = &self.nodes[position];
        node.enabled.contains(thread) && !node.sleeps_by_inheritance(thread) && !self.sleeps_in_vain(position, thread)
    }

    /// Whether it is what a thread sleeps for in a node that would have raced with the node's event, in a branch that was left out. If
    /// the event changes all that this operation touches, none of the thread's later ones can race with the event: they come after the
    /// operation, which comes after the event. Nor does anything have to come before the operation: whatever it depends on
    /// depends on the event. So it can go first, and what begins with it has been explored.
    fn sleeps_for_race(&self, position: usize, thread: ThreadId) -> bool {
        let Some(event) = self.nodes[position].op else { return false };
        let mut asleep = self.sleepers_of(position).filter(|s| s.thread == thread && !s.in_vain);
        asleep.any(|s| changes_all_of(&s.op, &event))
    }

    /// An execution has ended, in the last node's branch. One that came back to a state must not keep threads that it ran past from
    /// running: whoever could go first on the way round is explored there.
    pub fn ended(&mut self, end: End) {
        let depth = self.choices.len();
        let since = match end {
            End::Repeated(since) => since,
            End::SleepBlocked | End::Asked | End::InVain => return,
            End::Complete | End::Cut => {
                self.nodes[..depth].iter_mut().for_each(|n| n.ends = true);
                return;
            }
        };
        for node in &mut self.nodes[since.min(depth)..depth] {
            node.backtrack.union_with(&node.enabled);
        }
        // What comes after the way round is seen from its beginning, not from the states on it.
        self.nodes[(since + 1).min(depth)..depth].iter_mut().for_each(|n| n.ends = true);
        if let Some(node) = self.nodes[..depth].get_mut(since) {
            node.repeated = true;
        }
    }

    /// Whether an execution came back to one of the current states.
    pub fn has_repeated(&self) -> bool {
        self.nodes[..self.choices.len()].iter().any(|n| n.repeated)
    }

    /// The ways to states from which all executions that were run came back to them, since this was last asked.
    pub fn take_endless(&mut self) -> Vec<Vec<Choice>> {
        std::mem::take(&mut self.endless)
    }

    pub fn pop(&mut self) {
        let last = self.choices.len().saturating_sub(1);
        if self.nodes.get(last).is_some_and(|node| node.repeated && !node.ends) {
            self.endless.push(self.choices[..last].to_vec());
        }
        self.choices.pop();
    }

    /// An execution has been looked at.
    pub fn count(&mut self) {
        self.estimate.count();
    }

    /// How many executions there will have been, those that are cut off included.
    pub fn estimate(&self) -> f64 {
        let path = self.nodes[..self.choices.len()].iter().zip(&self.choices);
        Estimate::total(path.map(|(node, choice)| {
            let threads = node.backtrack.iter().filter(|t| !node.done.contains(*t) && !node.sleep.contains(*t));
            let ways = node.alternatives.saturating_sub(choice.alternative + 1);
            (&node.effort, threads.count() + ways as usize)
        }))
    }

    /// The plan that takes the last node's current branch.
    pub fn plan(&self) -> Plan {
        let position = self.choices.len() - 1;
        if !self.use_sleep {
            return Plan { choices: self.choices.clone(), kept: Some(self.kept(position + 1)), ..Plan::default() };
        }
        let sleep = self.nodes[position].sleep.clone();
        let in_vain = self.sleepers_of(position).filter(|s| s.in_vain && sleep.contains(s.thread)).map(|s| s.thread);
        let in_vain = in_vain.collect();
        let failed = self.sleepers_of(position).filter(|s| s.op.has_failed()).map(|s| s.thread).collect();
        let kept = Some(self.kept(position + 1));
        Plan { choices: self.choices.clone(), sleep, failed, ask: false, stops_in_vain: true, in_vain, kept }
    }

    /// The last of the first `nodes` nodes that has a branch left besides the current one: all choices before it stay.
    fn kept(&self, nodes: usize) -> usize {
        let has_more = |position: &usize| self.candidate(*position).is_some() || self.has_more_ways(*position);
        (0..nodes).rev().find(has_more).unwrap_or(0)
    }

    /// Whether a thread sleeps at the end of the current execution because all it could do is to come round in vain.
    pub fn ends_in_vain(&self, thread: ThreadId) -> bool {
        let Some(position) = self.choices.len().checked_sub(1) else { return false };
        let step = self.nodes[position].op;
        let stays = |s: &&Sleeper| !step.is_some_and(|op| dependent(&op, &s.op));
        let awake = self.choices[position].thread == thread;
        !awake && self.sleepers_of(position).filter(stays).any(|s| s.thread == thread && s.in_vain)
    }

    /// What became of the last node's turns in vain is known.
    pub fn is_dealt_with(&mut self, position: usize) {
        self.nodes[position].fruitful = true;
    }

    /// The choices that lead to a node.
    pub fn way_to(&self, position: usize) -> Vec<Choice> {
        self.choices[..position].to_vec()
    }

    /// The plan that goes on from the end of the current execution with a thread that sleeps there.
    pub fn beyond(&self, thread: ThreadId) -> Plan {
        let choice = Choice { thread, alternative: 0 };
        Plan { choices: self.choices.iter().copied().chain([choice]).collect(), ..Plan::default() }
    }

    /// The plan that goes on from the last node with whoever is asleep there.
    pub fn awakened(&self, position: usize) -> Plan {
        let thread = self.nodes[position].enabled.first();
        let choice = thread.map(|thread| Choice { thread, alternative: 0 });
        Plan { choices: self.choices[..position].iter().copied().chain(choice).collect(), ..Plan::default() }
    }

    /// The plan that comes to the last node and asks for the threads' memory there.
    pub fn question(&self, position: usize, thread: ThreadId) -> Plan {
        let mut choices = self.choices[..position].to_vec();
        choices.push(Choice { thread, alternative: 0 });
        Plan { choices, ask: true, kept: Some(self.kept(position)), ..Plan::default() }
    }
}

saved!(Node {
    enabled,
    backtrack,
    required,
    sleep,
    done,
    op,
    alternatives,
    cut,
    in_vain,
    repeated,
    ends,
    fruitful,
    inherited,
    own,
    effort
});
saved!(Sleeper { thread, op, since, in_vain });

/// The nodes that are not in use are left out.
impl Saved for Tree {
    fn save(&self, into: &mut Vec<u8>) {
        let Tree { nodes, choices, sleepers, use_sleep, endless, estimate } = self;
        choices.save(into);
        nodes[..choices.len()].iter().for_each(|n| n.save(into));
        sleepers.save(into);
        use_sleep.save(into);
        endless.save(into);
        estimate.save(into);
    }

    fn load(from: &mut Reader<'_>) -> Option<Tree> {
        let choices = Vec::load(from)?;
        let nodes: Vec<Node> = choices.iter().map(|_| Node::load(from)).collect::<Option<_>>()?;
        let sleepers: Vec<Sleeper> = Vec::load(from)?;
        let fits = |(start, end): (usize, usize)| start <= end && end <= sleepers.len();
        let sound = nodes.iter().all(|n| fits(n.inherited) && fits(n.own));
        let (use_sleep, endless, estimate) = (Saved::load(from)?, Saved::load(from)?, Saved::load(from)?);
        Some(Tree { nodes, choices, sleepers, use_sleep, endless, estimate }).filter(|_| sound)
    }
}
