//! The search tree along the current execution: per state, what has been and what has to be explored from there.
//!
//! The stack of nodes is one node per step of the current execution. [`Tree::branch`] goes back to the last node that
//! has something left, and that is the only place where a branch is taken: whether it may be left out (because another
//! thread's branch is as good) is to be asked there.
//!
//! A thread whose branch has been explored *sleeps* in the node and below it, until a step depends on its operation
//! (Godefroid). The worker does the same from the plan's sleep set. It knows the pending operation where the tree knows how that
//! turned out, a failed compare-and-swap say, so it may wake a thread earlier; then a step of a thread that should sleep is found
//! in the trace, and that thread is awake from there on.

use symdpor_abi::op::{Op, dependent};
use symdpor_trace::{Choice, Plan, Step, ThreadId, ThreadSet};

/// A state of the current execution.
#[derive(Default)]
pub struct Node {
    pub enabled: ThreadSet,
    /// Threads to be explored from here, explored or not.
    pub backtrack: ThreadSet,
    /// Threads asleep here, those explored from here included.
    pub sleep: ThreadSet,
    /// Threads whose branch has been taken, the current one included.
    done: ThreadSet,
    /// The operation of the current branch, and the number of ways it can go, once it has been seen.
    op: Option<Op>,
    alternatives: u16,
    /// Its sleepers: those inherited, and those explored here.
    inherited: (usize, usize),
    own: (usize, usize),
}

#[derive(Clone, Copy)]
struct Sleeper {
    thread: ThreadId,
    op: Op,
}

pub struct Tree {
    /// The first `choices.len()` are in use. The others keep their memory.
    nodes: Vec<Node>,
    /// The current branch of each node.
    choices: Vec<Choice>,
    sleepers: Vec<Sleeper>,
    use_sleep: bool,
}

impl Tree {
    pub fn new(use_sleep: bool) -> Tree {
        Tree { nodes: Vec::new(), choices: Vec::new(), sleepers: Vec::new(), use_sleep }
    }

    pub fn depth(&self) -> usize {
        self.choices.len()
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
        node
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
        node.done.clear();
        node.done.insert(step.thread);
        node.sleep.remove(step.thread);
        node.inherited = inherited;
        node.own = (self.sleepers.len(), self.sleepers.len());
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

    /// Takes the next branch: another way of the deepest node's operation, then another of its threads, then the node
    /// above. `None` when nothing is left.
    pub fn branch(&mut self) -> Option<Plan> {
        while let Some(position) = self.choices.len().checked_sub(1) {
            if let Some(choice) = self.next_choice(position) {
                self.choices[position] = choice;
                let sleep = if self.use_sleep { self.nodes[position].sleep.clone() } else { ThreadSet::new() };
                return Some(Plan { choices: self.choices.clone(), sleep });
            }
            self.choices.pop();
        }
        None
    }

    fn next_choice(&mut self, position: usize) -> Option<Choice> {
        let current = self.choices[position];
        let node = &mut self.nodes[position];
        self.sleepers.truncate(node.own.1);
        let alternative = current.alternative.checked_add(1).filter(|&a| a < node.alternatives && node.op.is_some());
        if let Some(alternative) = alternative {
            return Some(Choice { alternative, ..current });
        }
        if let Some(op) = node.op.take().filter(|_| self.use_sleep) {
            self.sleepers.push(Sleeper { thread: current.thread, op });
            node.own.1 = self.sleepers.len();
            node.sleep.insert(current.thread);
        }
        let thread = node.backtrack.first_outside(&node.done, &node.sleep)?;
        node.done.insert(thread);
        node.alternatives = 0;
        Some(Choice { thread, alternative: 0 })
    }
}
