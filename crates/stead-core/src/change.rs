//! How a session goes on: its list of things to do, plan mode, the agent that acts, the permission
//! mode. Each changes by the result of a call or by a person, and by nothing else.

use crate::{Ceiling, PermissionMode};
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
    /// This binds the session of a subagent from above from here on: it was handed more work.
    Ceiling(Ceiling),
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

impl PlanStage {
    /// The file of a plan that is being made.
    pub fn making(&self) -> Option<&str> {
        match self {
            Self::Making { file } => Some(file),
            Self::Agreed { .. } => None,
        }
    }
}

/// What a person changed about plan mode and the model does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanNews {
    /// It is on.
    Begun {
        /// The file of the plan.
        file: String,
    },
    /// It is off.
    Ended,
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Maker {
    /// The model, by a call.
    Call,
    /// A person.
    Person,
}

/// All changes of a session, as far as a rewind may return to them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Changes {
    /// Oldest first.
    made: Vec<Made>,
}

#[derive(Debug, Clone, PartialEq)]
struct Made {
    /// The entry.
    seq: u64,
    change: Change,
    by: Maker,
}

impl Changes {
    /// Takes one in. Between two inputs only the newest of its kind and maker counts, for a rewind
    /// returns to before an input.
    pub(crate) fn push(&mut self, seq: u64, change: Change, by: Maker, newest_input: u64) {
        self.made
            .retain(|old| old.seq < newest_input || old.by != by || !old.change.is_like(&change));
        self.made.push(Made { seq, change, by });
    }

    /// Forgets those after `seq`.
    pub(crate) fn rewind(&mut self, seq: u64) {
        self.made.retain(|made| made.seq <= seq);
    }

    fn newest<'a, T>(&'a self, pick: impl Fn(&'a Change) -> Option<T>) -> Option<T> {
        self.made.iter().rev().find_map(|made| pick(&made.change))
    }

    /// The entries that the things to do and the plan are from.
    pub(crate) fn current(&self) -> [Option<u64>; 2] {
        let newest = |is: fn(&Change) -> bool| {
            self.made
                .iter()
                .rev()
                .find(|made| is(&made.change))
                .map(|made| made.seq)
        };
        [
            newest(|change| matches!(change, Change::Todos { .. })),
            newest(|change| matches!(change, Change::Plan { .. })),
        ]
    }

    /// What a person changed about plan mode since the newest input, `more` included. The model
    /// knows what it did itself, and it was told of what came before that input.
    pub(crate) fn plan_news(&self, newest_input: u64, more: &[Change]) -> Option<PlanNews> {
        let making = |change: &Change| match change {
            Change::Plan { plan } => {
                Some(plan.as_ref().and_then(PlanStage::making).map(str::to_owned))
            }
            Change::Todos { .. }
            | Change::Agent { .. }
            | Change::Mode { .. }
            | Change::Ceiling(_) => None,
        };
        let known = self
            .made
            .iter()
            .filter(|made| made.by == Maker::Call || made.seq < newest_input);
        let known = known.rev().find_map(|made| making(&made.change)).flatten();
        let all = self.made.iter().map(|made| &made.change).chain(more);
        let now = all.rev().find_map(making).flatten();
        match (known, now) {
            (Some(_), Some(_)) | (None, None) => None,
            (None, Some(file)) => Some(PlanNews::Begun { file }),
            (Some(_), None) => Some(PlanNews::Ended),
        }
    }

    pub(crate) fn todos(&self) -> &[Todo] {
        let newest = self.newest(|change| match change {
            Change::Todos { todos } => Some(todos.as_slice()),
            Change::Plan { .. }
            | Change::Agent { .. }
            | Change::Mode { .. }
            | Change::Ceiling(_) => None,
        });
        newest.unwrap_or_default()
    }

    pub(crate) fn plan(&self) -> Option<&PlanStage> {
        let newest = self.newest(|change| match change {
            Change::Plan { plan } => Some(plan.as_ref()),
            Change::Todos { .. }
            | Change::Agent { .. }
            | Change::Mode { .. }
            | Change::Ceiling(_) => None,
        });
        newest.flatten()
    }

    pub(crate) fn agent(&self) -> Option<&str> {
        self.newest(|change| match change {
            Change::Agent { to } => Some(to.as_str()),
            Change::Todos { .. }
            | Change::Plan { .. }
            | Change::Mode { .. }
            | Change::Ceiling(_) => None,
        })
    }

    pub(crate) fn mode(&self) -> Option<PermissionMode> {
        self.newest(|change| match change {
            Change::Mode { to } => Some(*to),
            Change::Todos { .. }
            | Change::Plan { .. }
            | Change::Agent { .. }
            | Change::Ceiling(_) => None,
        })
    }

    pub(crate) fn ceiling(&self) -> Option<&Ceiling> {
        self.newest(|change| match change {
            Change::Ceiling(ceiling) => Some(ceiling),
            Change::Todos { .. }
            | Change::Plan { .. }
            | Change::Agent { .. }
            | Change::Mode { .. } => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn making() -> Change {
        Change::Plan {
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
            |seq, change, newest_input| changes.push(seq, change, Maker::Call, newest_input);
        push(
            3,
            Change::Todos {
                todos: vec![todo("a")],
            },
            2,
        );
        push(
            4,
            Change::Todos {
                todos: vec![todo("b")],
            },
            2,
        );
        push(
            5,
            Change::Agent {
                to: "builder".into(),
            },
            2,
        );
        push(9, Change::Todos { todos: Vec::new() }, 8);
        push(10, making(), 8);
        assert_eq!(changes.made.len(), 4);
        assert_eq!(
            (changes.todos(), changes.current()),
            (&[][..], [Some(9), Some(10)])
        );
        assert!(changes.plan().is_some());
        changes.rewind(7);
        assert_eq!(
            (changes.todos(), changes.current()),
            (&[todo("b")][..], [Some(4), None])
        );
        assert_eq!(
            (changes.plan(), changes.agent(), changes.mode()),
            (None, Some("builder"), None)
        );
    }

    #[test]
    fn the_model_is_told_of_what_a_person_changed_about_plan_mode_and_only_of_that() {
        use Maker::{Call, Person};
        let off = || Change::Plan { plan: None };
        let begun = || {
            Some(PlanNews::Begun {
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
            (vec![(5, making(), Call), (8, off(), Person)], 2, vec![], Some(PlanNews::Ended)),
            (vec![(5, making(), Call), (8, off(), Person)], 2, vec![making()], None),
            (vec![(5, making(), Call), (6, off(), Call)], 2, vec![], None),
            (vec![], 4, vec![making(), Change::Mode { to: PermissionMode::Explore }], begun()),
        ];
        for (made, newest_input, more, news) in table {
            let mut changes = Changes::default();
            made.iter().for_each(|(seq, change, by)| {
                changes.push(*seq, change.clone(), *by, newest_input)
            });
            assert_eq!(
                changes.plan_news(newest_input, &more),
                news,
                "{made:?} {more:?}"
            );
        }
    }
}
