//! The list of tasks in OpenPaw's format: a version, the time of the last change, and the tasks.
//! Unknown keys are kept.
//!
//! Effects: none.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::HashSet;
use stead_core::{YamlError, YamlValue};

/// The version of the file's format.
const VERSION: i128 = 1;

/// How far a task has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    Pending,
    InProgress,
    AwaitingCheck,
    Completed,
    Failed,
    Cancelled,
}

impl Status {
    const ALL: [Self; 6] = [
        Self::Pending,
        Self::InProgress,
        Self::AwaitingCheck,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
    ];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::AwaitingCheck => "awaiting_check",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether the task has ended.
    pub(super) fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Pending | Self::InProgress | Self::AwaitingCheck => false,
        }
    }
}

/// How much it matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Priority {
    Urgent,
    High,
    #[default]
    Normal,
    Low,
}

impl Priority {
    const ALL: [Self; 4] = [Self::Urgent, Self::High, Self::Normal, Self::Low];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Urgent => "urgent",
            Self::High => "high",
            Self::Normal => "normal",
            Self::Low => "low",
        }
    }
}

/// A task: the keys of its map.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskItem(Vec<(String, YamlValue)>);

impl TaskItem {
    /// A new task, with the keys that OpenPaw writes.
    pub(super) fn new(
        id: String,
        kind: String,
        description: String,
        priority: Priority,
        now: Timestamp,
    ) -> Self {
        let text = |(key, value): (&str, String)| (key.to_owned(), YamlValue::Text(value));
        let given = [
            ("id", id),
            ("type", kind),
            ("status", Status::Pending.as_str().to_owned()),
            ("description", description),
            ("priority", priority.as_str().to_owned()),
            ("created_at", python_iso(now)),
        ];
        let empty = |key: &str| (key.to_owned(), YamlValue::Null);
        let mut keys: Vec<(String, YamlValue)> = given.into_iter().map(text).collect();
        keys.extend(
            [
                "started_at",
                "completed_at",
                "expected_duration_minutes",
                "deadline",
                "last_checked_at",
            ]
            .map(empty),
        );
        keys.push(("check_count".to_owned(), YamlValue::Int(0)));
        keys.extend(["check_interval_minutes", "notes"].map(empty));
        keys.push(("metadata".to_owned(), YamlValue::Map(Vec::new())));
        keys.extend(["result_summary", "result_path", "error_message"].map(empty));
        Self(keys)
    }

    pub(super) fn get(&self, key: &str) -> Option<&YamlValue> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value)
    }

    pub(super) fn set(&mut self, key: &str, value: YamlValue) {
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
    }

    /// Returns the text of a key that every task has.
    pub(super) fn text(&self, key: &str) -> &str {
        self.get(key)
            .and_then(YamlValue::as_text)
            .unwrap_or_default()
    }

    pub(super) fn status(&self) -> Option<Status> {
        Status::ALL
            .into_iter()
            .find(|status| status.as_str() == self.text("status"))
    }

    pub(super) fn priority(&self) -> Priority {
        let named = Priority::ALL
            .into_iter()
            .find(|priority| priority.as_str() == self.text("priority"));
        named.unwrap_or_default()
    }

    /// Formats the whole task, as it is in the file.
    pub(super) fn render(&self) -> String {
        let known = self
            .0
            .iter()
            .filter(|(_, value)| *value != YamlValue::Null)
            .cloned();
        YamlValue::Map(known.collect()).to_string()
    }

    /// Returns what is wrong with the task at position `number` of a file.
    fn problem(&self, number: usize) -> Option<String> {
        let missing = ["id", "type", "status", "description"]
            .into_iter()
            .find(|key| self.text(key).is_empty());
        match missing {
            Some(key) => Some(format!("task {number} has no `{key}`")),
            None if self.status().is_none() => Some(format!(
                "task {number} has the status {:?}, which is none",
                self.text("status")
            )),
            None => None,
        }
    }
}

/// The list of tasks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TaskList {
    /// The keys of the file before and after the tasks.
    keys: Vec<(String, YamlValue)>,
    pub(super) tasks: Vec<TaskItem>,
}

impl TaskList {
    /// Reads a file. A damaged file is an error, so that it is not overwritten.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let mut keys = parse_map(text)?;
        match keys
            .iter()
            .find(|(key, _)| key == "version")
            .map(|(_, value)| value)
        {
            None | Some(YamlValue::Int(VERSION)) => {}
            Some(_) => return Err(format!("its `version` is not {VERSION}")),
        }
        let listed = keys
            .iter_mut()
            .find(|(key, _)| key == "tasks")
            .map(|(_, value)| std::mem::replace(value, YamlValue::Null));
        let listed = match listed {
            None | Some(YamlValue::Null) => Vec::new(),
            Some(YamlValue::List(items)) => items,
            Some(_) => return Err("its `tasks` are no list".to_owned()),
        };
        let mut tasks: Vec<TaskItem> = Vec::with_capacity(listed.len());
        let mut ids = HashSet::new();
        for (at, item) in listed.into_iter().enumerate() {
            let YamlValue::Map(map) = item else {
                return Err(format!("task {} is no map", at + 1));
            };
            let task = TaskItem(map);
            if let Some(problem) = task.problem(at + 1) {
                return Err(problem);
            }
            if !ids.insert(task.text("id").to_owned()) {
                return Err(format!("two tasks have the id {}", task.text("id")));
            }
            tasks.push(task);
        }
        Ok(Self { keys, tasks })
    }

    /// Formats the file, with `now` as the time of the change.
    pub(super) fn write(&self, now: Timestamp) -> String {
        let mut keys = self.keys.clone();
        let mut set =
            |key: &str, value: YamlValue| match keys.iter_mut().find(|(known, _)| known == key) {
                Some((_, old)) => *old = value,
                None => keys.push((key.to_owned(), value)),
            };
        set("version", YamlValue::Int(VERSION));
        set("last_updated", YamlValue::Text(python_iso(now)));
        set(
            "tasks",
            YamlValue::List(
                self.tasks
                    .iter()
                    .map(|task| YamlValue::Map(task.0.clone()))
                    .collect(),
            ),
        );
        YamlValue::Map(keys).to_string()
    }

    pub(super) fn position(&self, id: &str) -> Result<usize, String> {
        let found = self.tasks.iter().position(|task| task.text("id") == id);
        found.ok_or_else(|| format!("there is no task {id:?}; list_tasks lists them"))
    }
}

/// Parses a file that is one map.
fn parse_map(text: &str) -> Result<Vec<(String, YamlValue)>, String> {
    match text.parse().map_err(|error: YamlError| error.to_string())? {
        YamlValue::Map(map) => Ok(map),
        YamlValue::Null => Ok(Vec::new()),
        YamlValue::Bool(_)
        | YamlValue::Int(_)
        | YamlValue::Float(_)
        | YamlValue::Text(_)
        | YamlValue::List(_) => Err("it is no map".to_owned()),
    }
}

/// Formats a time as Python does.
pub(super) fn python_iso(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_map_is_damaged() {
        for (text, message) in [
            ("- a\n", "it is no map"),
            ("a: [", "line 1: "),
            ("a: 1\na: 2\n", "line "),
        ] {
            let error = TaskList::read(text).unwrap_err();
            assert!(error.starts_with(message), "{text:?}: {error}");
        }
        let long: String = (0..20_000)
            .map(|n| format!("- {{id: t{n}, type: x, status: pending, description: d}}\n"))
            .collect();
        let list = TaskList::read(&format!("tasks:\n{long}")).unwrap();
        assert_eq!(list.tasks.len(), 20_000);
        let again =
            format!("tasks:\n{long}- {{id: t7, type: x, status: pending, description: d}}\n");
        assert_eq!(
            TaskList::read(&again).unwrap_err(),
            "two tasks have the id t7"
        );
        let empty = TaskList::read("# nothing yet\n").unwrap();
        assert_eq!(empty.tasks, []);
    }
}
