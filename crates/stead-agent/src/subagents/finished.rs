//! Notices about tasks of subagents that ended.
//!
//! Effects: none.

use super::{Subagents, TaskRecord};
use std::collections::BTreeSet;
use stead_core::{Notice, NoticeKind, RunId, TaintOrigins};

/// The most tasks in one notice.
const MAX_REPORTED: usize = 10;
/// The most characters of each result.
const MAX_RESULT_CHARS: usize = 20_000;

/// Tasks that ended, and the notice about them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedTasks {
    /// The text for the model.
    pub(crate) text: String,
    /// The ids of the tasks.
    pub(crate) tasks: Vec<String>,
    /// The origins of the untrusted content that they took in.
    pub(crate) taint: TaintOrigins,
}

impl FinishedTasks {
    /// Returns the journal entry.
    pub(crate) fn into_notice(self, run: RunId) -> Notice {
        Notice {
            tasks: self.tasks,
            untrusted: !self.taint.is_empty(),
            taint: self.taint.named().to_vec(),
            ..Notice::new(run, NoticeKind::Tasks, self.text)
        }
    }
}

impl Subagents {
    /// Returns the tasks that ended and are not in `reported`; `None` if there are none.
    pub(crate) fn finished_since(&self, reported: &BTreeSet<String>) -> Option<FinishedTasks> {
        let mut finished = self.records.all();
        finished.retain(|task| task.status.is_final() && !reported.contains(&task.task_id));
        finished.sort_by(|a, b| {
            a.last_updated_at
                .cmp(&b.last_updated_at)
                .then_with(|| a.task_id.cmp(&b.task_id))
        });
        finished.truncate(MAX_REPORTED);
        if finished.is_empty() {
            return None;
        }
        let blocks: Vec<String> = finished.iter().map(TaskRecord::render_end).collect();
        let text = format!(
            "<system_reminder>\nTasks that you handed over have ended:\n{}\n</system_reminder>",
            blocks.join("\n")
        );
        let taint = finished.iter().flat_map(TaskRecord::result_taint).collect();
        Some(FinishedTasks {
            text,
            tasks: finished.into_iter().map(|task| task.task_id).collect(),
            taint,
        })
    }
}

impl TaskRecord {
    /// Returns the end of the task as a model reads it.
    fn render_end(&self) -> String {
        let Self {
            task_id,
            sub_agent_id,
            ..
        } = self;
        let label = self.label.as_ref().map_or(String::new(), |label| {
            format!(" label=\"{}\"", escaped(label))
        });
        let state = self.status_text();
        format!(
            "<task id=\"{task_id}\" agent=\"{sub_agent_id}\"{label} state=\"{state}\">\n{}\n</task>",
            escaped(&self.result_text())
        )
    }

    /// Returns the result or the error; if there is neither, the status.
    pub(crate) fn result_text(&self) -> String {
        let text = match (&self.result, &self.error_message) {
            (Some(result), _) => result.clone(),
            (None, Some(error)) => error.clone(),
            (None, None) => format!("it is {}", self.status_text()),
        };
        match text.char_indices().nth(MAX_RESULT_CHARS) {
            Some((end, _)) => {
                format!(
                    "{}…\n[cut: session_history of {} has all of it]",
                    &text[..end],
                    self.sub_session_id
                )
            }
            None => text,
        }
    }
}

/// Escapes the tags that enclose the text.
fn escaped(text: &str) -> String {
    text.replace("</task", "&lt;/task")
        .replace("</system_reminder", "&lt;/system_reminder")
}
