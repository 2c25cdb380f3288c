//! Changes of a session: todos, plan mode, the acting agent, the permission mode, trust. Only the
//! result of a call or a person makes such a change.
//!
//! Effects: none.

use crate::{PermissionCeiling, PermissionMode, SessionModel};
use serde::{Deserialize, Serialize};

/// A change of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sets", rename_all = "snake_case")]
pub enum SessionChange {
    /// The todos are replaced.
    Todos {
        /// All todos.
        todos: Vec<Todo>,
    },
    /// Plan mode begins or ends.
    Plan {
        /// The stage of the plan; `None` if there is no plan.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        plan: Option<PlanStage>,
    },
    /// Another agent of the workspace becomes active.
    Agent {
        /// The agent.
        to: String,
    },
    /// The permission mode changes.
    Mode {
        /// The new mode.
        to: PermissionMode,
        /// Proves that the person chose it on this account.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seal: Option<String>,
    },
    /// The ceiling of a subagent's session changes, because it was handed more work.
    Ceiling(PermissionCeiling),
    /// The session runs with another model from now on.
    Model {
        /// The model.
        to: SessionModel,
    },
    /// A person vouches for everything in the session so far: it is no longer tainted.
    Trust,
    /// A person gives the session a title, by which it is listed and found.
    Title {
        /// The title.
        to: String,
    },
}

impl SessionChange {
    /// Returns the change to a permission mode. It is sealed when it is recorded.
    pub fn mode(to: PermissionMode) -> Self {
        Self::Mode { to, seal: None }
    }

    /// Returns whether a newer change replaces this one.
    fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A todo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Todo {
    /// The text.
    pub content: String,
    /// The status.
    pub status: TodoStatus,
}

/// The status of a todo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TodoStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
}

impl TodoStatus {
    /// Returns the name used in journals and by tools.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
        }
    }
}

/// A plan: being made, or agreed to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case")]
pub enum PlanStage {
    /// The plan is being made: nothing else may be written.
    Making {
        /// The file of the plan.
        file: String,
    },
    /// A person agreed to it.
    Agreed {
        /// The file of the plan.
        file: String,
        /// Its text at that time.
        text: String,
    },
}

impl PlanStage {
    /// Returns the file of a plan that is being made.
    pub fn draft_file(&self) -> Option<&str> {
        match self {
            Self::Making { file } => Some(file),
            Self::Agreed { .. } => None,
        }
    }
}

/// A change of plan mode by a person that the model does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanModeChange {
    /// Plan mode is on.
    Entered {
        /// The file of the plan.
        file: String,
    },
    /// Plan mode is off.
    Exited,
}

/// The author of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeAuthor {
    /// The model, by a call.
    Call,
    /// A person.
    Person,
}

/// All changes of a session that a rewind may return to.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    /// The changes, oldest first.
    recorded: Vec<RecordedChange>,
}

#[derive(Debug, Clone, PartialEq)]
struct RecordedChange {
    /// The entry.
    seq: u64,
    change: SessionChange,
    by: ChangeAuthor,
}

impl Changes {
    /// Adds a change. Between two inputs only the newest of its kind and author is kept, because a
    /// rewind returns to a point before an input.
    pub(crate) fn push(
        &mut self,
        seq: u64,
        change: SessionChange,
        by: ChangeAuthor,
        newest_input: u64,
    ) {
        self.recorded
            .retain(|old| old.seq < newest_input || old.by != by || !old.change.same_kind(&change));
        self.recorded.push(RecordedChange { seq, change, by });
    }

    /// Removes the changes after `seq`.
    pub(crate) fn rewind(&mut self, seq: u64) {
        self.recorded.retain(|made| made.seq <= seq);
    }

    fn newest<'a, T>(&'a self, pick: impl Fn(&'a SessionChange) -> Option<T>) -> Option<T> {
        self.recorded
            .iter()
            .rev()
            .find_map(|made| pick(&made.change))
    }

    /// Returns the entries that set the todos and the plan.
    pub(crate) fn current_seqs(&self) -> [Option<u64>; 2] {
        let newest = |is: fn(&SessionChange) -> bool| {
            self.recorded
                .iter()
                .rev()
                .find(|made| is(&made.change))
                .map(|made| made.seq)
        };
        [
            newest(|change| matches!(change, SessionChange::Todos { .. })),
            newest(|change| matches!(change, SessionChange::Plan { .. })),
        ]
    }

    /// Returns the change of plan mode by a person since the newest input, including `more`. The
    /// model knows its own changes, and was told of those before that input.
    pub(crate) fn unannounced_plan_change(
        &self,
        newest_input: u64,
        more: &[SessionChange],
    ) -> Option<PlanModeChange> {
        let making = |change: &SessionChange| match change {
            SessionChange::Plan { plan } => Some(
                plan.as_ref()
                    .and_then(PlanStage::draft_file)
                    .map(str::to_owned),
            ),
            SessionChange::Todos { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Ceiling(_)
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        };
        let known = self
            .recorded
            .iter()
            .filter(|made| made.by == ChangeAuthor::Call || made.seq < newest_input);
        let known = known.rev().find_map(|made| making(&made.change)).flatten();
        let all = self.recorded.iter().map(|made| &made.change).chain(more);
        let now = all.rev().find_map(making).flatten();
        match (known, now) {
            (Some(_), Some(_)) | (None, None) => None,
            (None, Some(file)) => Some(PlanModeChange::Entered { file }),
            (Some(_), None) => Some(PlanModeChange::Exited),
        }
    }

    pub(crate) fn todos(&self) -> &[Todo] {
        let newest = self.newest(|change| match change {
            SessionChange::Todos { todos } => Some(todos.as_slice()),
            SessionChange::Plan { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Ceiling(_)
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        });
        newest.unwrap_or_default()
    }

    pub(crate) fn plan(&self) -> Option<&PlanStage> {
        let newest = self.newest(|change| match change {
            SessionChange::Plan { plan } => Some(plan.as_ref()),
            SessionChange::Todos { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Ceiling(_)
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        });
        newest.flatten()
    }

    pub(crate) fn agent(&self) -> Option<&str> {
        self.newest(|change| match change {
            SessionChange::Agent { to } => Some(to.as_str()),
            SessionChange::Todos { .. }
            | SessionChange::Plan { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Ceiling(_)
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        })
    }

    /// Returns the mode, and its seal.
    pub(crate) fn mode(&self) -> Option<(PermissionMode, Option<&str>)> {
        self.newest(|change| match change {
            SessionChange::Mode { to, seal } => Some((*to, seal.as_deref())),
            SessionChange::Todos { .. }
            | SessionChange::Plan { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Ceiling(_)
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        })
    }

    pub(crate) fn ceiling(&self) -> Option<&PermissionCeiling> {
        self.newest(|change| match change {
            SessionChange::Ceiling(ceiling) => Some(ceiling),
            SessionChange::Todos { .. }
            | SessionChange::Plan { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Model { .. }
            | SessionChange::Trust
            | SessionChange::Title { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn making() -> SessionChange {
        SessionChange::Plan {
            plan: Some(PlanStage::Making {
                file: "plans/PLAN.md".into(),
            }),
        }
    }

    #[test]
    fn the_newest_of_each_kind_counts_and_a_rewind_brings_earlier_ones_back() {
        let todo = |content: &str| Todo {
            content: content.to_owned(),
            status: TodoStatus::Pending,
        };
        let mut changes = Changes::default();
        let mut push =
            |seq, change, newest_input| changes.push(seq, change, ChangeAuthor::Call, newest_input);
        push(
            3,
            SessionChange::Todos {
                todos: vec![todo("a")],
            },
            2,
        );
        push(
            4,
            SessionChange::Todos {
                todos: vec![todo("b")],
            },
            2,
        );
        push(
            5,
            SessionChange::Agent {
                to: "builder".into(),
            },
            2,
        );
        push(9, SessionChange::Todos { todos: Vec::new() }, 8);
        push(10, making(), 8);
        assert_eq!(changes.recorded.len(), 4);
        assert_eq!(
            (changes.todos(), changes.current_seqs()),
            (&[][..], [Some(9), Some(10)])
        );
        assert!(changes.plan().is_some());
        changes.rewind(7);
        assert_eq!(
            (changes.todos(), changes.current_seqs()),
            (&[todo("b")][..], [Some(4), None])
        );
        assert_eq!(
            (changes.plan(), changes.agent(), changes.mode()),
            (None, Some("builder"), None)
        );
    }

    #[test]
    fn the_model_is_told_of_what_a_person_changed_about_plan_mode_and_only_of_that() {
        use ChangeAuthor::{Call, Person};
        let off = || SessionChange::Plan { plan: None };
        let begun = || {
            Some(PlanModeChange::Entered {
                file: "plans/PLAN.md".into(),
            })
        };
        // Changes, the newest input, pending changes, and the expected result.
        #[rustfmt::skip]
        let table = [
            (vec![], 0, vec![], None),
            (vec![(2, making(), Person)], 0, vec![], begun()),
            (vec![(2, making(), Person)], 3, vec![], None),
            (vec![(2, making(), Person), (3, off(), Person)], 0, vec![], None),
            (vec![(5, making(), Call)], 2, vec![], None),
            (vec![(5, making(), Call), (8, off(), Person)], 2, vec![], Some(PlanModeChange::Exited)),
            (vec![(5, making(), Call), (8, off(), Person)], 2, vec![making()], None),
            (vec![(5, making(), Call), (6, off(), Call)], 2, vec![], None),
            (vec![], 4, vec![making(), SessionChange::mode(PermissionMode::Explore)], begun()),
        ];
        for (made, newest_input, more, news) in table {
            let mut changes = Changes::default();
            made.iter().for_each(|(seq, change, by)| {
                changes.push(*seq, change.clone(), *by, newest_input)
            });
            assert_eq!(
                changes.unannounced_plan_change(newest_input, &more),
                news,
                "{made:?} {more:?}"
            );
        }
    }
}
