//! What a session is told of those who work for it.

use super::{Subagents, TaskRecord};
use std::collections::BTreeSet;
use stead_core::{Notice, RunId};

/// Tasks that are told of at once.
const MAX_REPORTED: usize = 10;
/// Characters of each result that are told.
const MAX_RESULT_CHARS: usize = 20_000;

/// News of tasks that ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FinishedTasks {
    /// For the model.
    pub(crate) text: String,
    /// The tasks.
    pub(crate) tasks: Vec<String>,
    /// Whether one of them took in words that nobody here vouches for.
    pub(crate) untrusted: bool,
}

impl FinishedTasks {
    /// As it goes on record.
    pub(crate) fn into_notice(self, run: RunId) -> Notice {
        Notice {
            tasks: self.tasks,
            untrusted: self.untrusted,
            ..Notice::new(run, self.text)
        }
    }
}

impl Subagents {
    /// What ended since, of all that `told` does not have.
    pub(crate) fn finished_since(&self, told: &BTreeSet<String>) -> Option<FinishedTasks> {
        let mut ended = self.records.all();
        ended.retain(|task| task.status.is_final() && !told.contains(&task.task_id));
        ended.sort_by(|a, b| {
            a.last_updated_at
                .cmp(&b.last_updated_at)
                .then_with(|| a.task_id.cmp(&b.task_id))
        });
        ended.truncate(MAX_REPORTED);
        if ended.is_empty() {
            return None;
        }
        let blocks: Vec<String> = ended.iter().map(TaskRecord::render_end).collect();
        let text = format!(
            "<system_reminder>\nTasks that you handed over have ended:\n{}\n</system_reminder>",
            blocks.join("\n")
        );
        let untrusted = ended.iter().any(|task| task.untrusted);
        Some(FinishedTasks {
            text,
            tasks: ended.into_iter().map(|task| task.task_id).collect(),
            untrusted,
        })
    }
}

impl TaskRecord {
    /// How it ended, for a model.
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

    /// What came of it, or how it stands.
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

/// Words that cannot end what stands around them.
fn escaped(text: &str) -> String {
    text.replace("</task", "&lt;/task")
        .replace("</system_reminder", "&lt;/system_reminder")
}
