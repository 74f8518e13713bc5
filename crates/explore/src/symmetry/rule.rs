//! The parts of the rule. Tests switch them off one by one to see that each is needed.

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Plain accesses before the branch are looked at.
    pub plain: bool,
    /// So are those that another thread than the twins would race with.
    pub third: bool,
    /// So are atomic accesses against plain ones.
    pub mixed: bool,
    /// Visible operations before the branch are run the other way round too.
    pub visible: bool,
    /// Operations that are blocked at the end count.
    pub pending: bool,
    /// Joins tell threads apart.
    pub joins: bool,
    /// So do joins that are blocked at the end.
    pub pending_joins: bool,
    /// So do results of joins.
    pub results: bool,
    /// Twins of sleeping threads are left out too. Needed for no verdict.
    pub sleepers: bool,
}

impl Rule {
    pub const SOUND: Rule = Rule {
        plain: true,
        third: true,
        mixed: true,
        visible: true,
        pending: true,
        joins: true,
        pending_joins: true,
        results: true,
        sleepers: true,
    };

    /// That of the paper: twins are as good as each other. Not sound.
    pub const PAPER: Rule = Rule {
        plain: false,
        third: false,
        mixed: false,
        visible: false,
        pending: false,
        joins: false,
        pending_joins: false,
        results: false,
        sleepers: false,
    };
}
