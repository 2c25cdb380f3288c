//! How a session goes on: its list of things to do, plan mode, the agent that acts, the permission
//! mode. Each changes by the result of a call or by a person, and by nothing else.

use crate::{PermissionCeiling, PermissionMode};
use serde::{Deserialize, Serialize};

/// A change of how a session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "sets", rename_all = "snake_case")]
pub enum SessionChange {
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
    /// This binds the session of a subagent from above from here on: it was handed more work.
    Ceiling(PermissionCeiling),
}

impl SessionChange {
    /// Whether a newer change takes the place of this one.
    fn same_kind(&self, other: &Self) -> bool {
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

impl PlanStage {
    /// The file of a plan that is being made.
    pub fn draft_file(&self) -> Option<&str> {
        match self {
            Self::Making { file } => Some(file),
            Self::Agreed { .. } => None,
        }
    }
}

/// What a person changed about plan mode and the model does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanModeChange {
    /// It is on.
    Entered {
        /// The file of the plan.
        file: String,
    },
    /// It is off.
    Exited,
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeAuthor {
    /// The model, by a call.
    Call,
    /// A person.
    Person,
}

/// All changes of a session, as far as a rewind may return to them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    /// Oldest first.
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
    /// Takes one in. Between two inputs only the newest of its kind and maker counts, for a rewind
    /// returns to before an input.
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

    /// Forgets those after `seq`.
    pub(crate) fn rewind(&mut self, seq: u64) {
        self.recorded.retain(|made| made.seq <= seq);
    }

    fn newest<'a, T>(&'a self, pick: impl Fn(&'a SessionChange) -> Option<T>) -> Option<T> {
        self.recorded
            .iter()
            .rev()
            .find_map(|made| pick(&made.change))
    }

    /// The entries that the things to do and the plan are from.
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

    /// What a person changed about plan mode since the newest input, `more` included. The model
    /// knows what it did itself, and it was told of what came before that input.
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
            | SessionChange::Ceiling(_) => None,
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
            | SessionChange::Ceiling(_) => None,
        });
        newest.unwrap_or_default()
    }

    pub(crate) fn plan(&self) -> Option<&PlanStage> {
        let newest = self.newest(|change| match change {
            SessionChange::Plan { plan } => Some(plan.as_ref()),
            SessionChange::Todos { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Ceiling(_) => None,
        });
        newest.flatten()
    }

    pub(crate) fn agent(&self) -> Option<&str> {
        self.newest(|change| match change {
            SessionChange::Agent { to } => Some(to.as_str()),
            SessionChange::Todos { .. }
            | SessionChange::Plan { .. }
            | SessionChange::Mode { .. }
            | SessionChange::Ceiling(_) => None,
        })
    }

    pub(crate) fn mode(&self) -> Option<PermissionMode> {
        self.newest(|change| match change {
            SessionChange::Mode { to } => Some(*to),
            SessionChange::Todos { .. }
            | SessionChange::Plan { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Ceiling(_) => None,
        })
    }

    pub(crate) fn ceiling(&self) -> Option<&PermissionCeiling> {
        self.newest(|change| match change {
            SessionChange::Ceiling(ceiling) => Some(ceiling),
            SessionChange::Todos { .. }
            | SessionChange::Plan { .. }
            | SessionChange::Agent { .. }
            | SessionChange::Mode { .. } => None,
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
        // Changes, the newest input, changes to come, and the news.
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
            (vec![], 4, vec![making(), SessionChange::Mode { to: PermissionMode::Explore }], begun()),
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
