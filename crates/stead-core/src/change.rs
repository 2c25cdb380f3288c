//! How a session goes on: its list of things to do, plan mode, the agent that acts, the permission mode. Each changes by
//! the result of a call or by a person, and by nothing else.

use crate::PermissionMode;
use serde::{Deserialize, Serialize};

/// A change of how a session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sets", rename_all = "snake_case")]
pub enum Change {
    /// The things to do are these now.
    Todos {
        /// All of them.
        todos: Vec<Todo>,
    },
    /// Plan mode begins, or ends.
    Plan {
        /// How it stands now; none = there is no plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanStage>,
    },
    /// Another agent of the workspace acts from here on.
    Agent {
        /// Which.
        to: String,
    },
    /// Another permission mode holds from here on.
    Mode {
        /// Which.
        to: PermissionMode,
    },
}

impl Change {
    /// Whether a newer change takes the place of this one.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Todo {
    /// What.
    pub content: String,
    /// How far it has come.
    pub status: TodoStatus,
}

/// How far something to do has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// The name used in journals and by tools.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A plan: being made, or made and agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum PlanStage {
    /// It is being made: nothing but the plan may be written.
    Making {
        /// The file it goes to.
        file: String,
    },
    /// A person agreed to it.
    Agreed {
        /// The file it lies in.
        file: String,
        /// What it said then.
        text: String,
    },
}

/// All changes of a session, as far as a rewind may return to them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    /// The entry of each, oldest first.
    made: Vec<(u64, Change)>,
}

impl Changes {
    /// Takes one in. Between two inputs only the newest of its kind counts, for a rewind returns to before an input.
    pub(crate) fn push(&mut self, seq: u64, change: Change, newest_input: u64) {
        self.made.retain(|(at, old)| *at < newest_input || !old.is_like(&change));
        self.made.push((seq, change));
    }

    /// Forgets those after `seq`.
    pub(crate) fn rewind(&mut self, seq: u64) {
        self.made.retain(|(at, _)| *at <= seq);
    }

    fn newest<'a, T>(&'a self, pick: impl Fn(&'a Change) -> Option<T>) -> Option<T> {
        self.made.iter().rev().find_map(|(_, change)| pick(change))
    }

    pub(crate) fn todos(&self) -> &[Todo] {
        let newest = self.newest(|change| match change {
            Change::Todos { todos } => Some(todos.as_slice()),
            Change::Plan { .. } | Change::Agent { .. } | Change::Mode { .. } => None,
        });
        newest.unwrap_or_default()
    }

    pub(crate) fn plan(&self) -> Option<&PlanStage> {
        let newest = self.newest(|change| match change {
            Change::Plan { plan } => Some(plan.as_ref()),
            Change::Todos { .. } | Change::Agent { .. } | Change::Mode { .. } => None,
        });
        newest.flatten()
    }

    pub(crate) fn agent(&self) -> Option<&str> {
        self.newest(|change| match change {
            Change::Agent { to } => Some(to.as_str()),
            Change::Todos { .. } | Change::Plan { .. } | Change::Mode { .. } => None,
        })
    }

    pub(crate) fn mode(&self) -> Option<PermissionMode> {
        self.newest(|change| match change {
            Change::Mode { to } => Some(*to),
            Change::Todos { .. } | Change::Plan { .. } | Change::Agent { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_kind_counts_and_a_rewind_brings_earlier_ones_back() {
        let todo = |content: &str| Todo { content: content.to_owned(), status: TodoStatus::Pending };
        let mut changes = Changes::default();
        changes.push(3, Change::Todos { todos: vec![todo("a")] }, 2);
        changes.push(4, Change::Todos { todos: vec![todo("b")] }, 2);
        changes.push(5, Change::Agent { to: "builder".into() }, 2);
        changes.push(9, Change::Todos { todos: Vec::new() }, 8);
        changes.push(10, Change::Plan { plan: Some(PlanStage::Making { file: "plans/PLAN.md".into() }) }, 8);
        assert_eq!(changes.made.len(), 4);
        assert_eq!(changes.todos(), []);
        assert!(changes.plan().is_some());
        changes.rewind(7);
        assert_eq!(changes.todos(), [todo("b")]);
        assert_eq!((changes.plan(), changes.agent(), changes.mode()), (None, Some("builder"), None));
    }
}
