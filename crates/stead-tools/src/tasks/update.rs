//! The `update_task` tool, which notes the progress of a task that outlives the conversation.
//!
//! Effects: the clock, the environment, workspace files (writes).

use super::list::{Status, TaskItem, python_iso};
use super::tools::{TaskFile, check_length};
use super::update_list;
use crate::{CallPlan, Output, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{AccessKind, ArgumentAliases, Exposure, Risk, ToolKind, YamlValue};

const UPDATE_TASK: ToolIdentity = ToolIdentity::new("update_task", ToolKind::Task)
    .aliases(&["TaskUpdate"])
    .exposed(Exposure::OnDemand);

/// The most characters of all notes of a task.
const MAX_NOTES_CHARS: usize = 20_000;

pub(super) struct UpdateTask(pub(super) TaskFile);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateTaskArgs {
    /// The task, as list_tasks names it.
    task_id: String,
    /// How far it has come, if that changed.
    #[serde(default)]
    status: Option<Status>,
    /// What happened; it is added to the notes there are.
    #[serde(default)]
    notes: Option<String>,
    /// What came of it, once it is completed.
    #[serde(default)]
    result_summary: Option<String>,
    /// The file that came of it.
    #[serde(default)]
    result_path: Option<String>,
    /// What went wrong, once it has failed.
    #[serde(default)]
    error_message: Option<String>,
}

impl TypedTool for UpdateTask {
    type Args = UpdateTaskArgs;
    const DEF: ToolDef = ToolDef::new(
        UPDATE_TASK,
        Risk::WRITES,
        "Notes down how a task goes on: its status, notes, its result or what went wrong. \
        A call that changes nothing else notes that you looked at it.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases {
        joined: &[("subject", "description")],
        ..ArgumentAliases::of_names(&[
            ("taskId", "task_id"),
            ("description", "notes"),
            ("subject", "notes"),
        ])
    });

    fn plan(&self, _: &UpdateTaskArgs) -> CallPlan {
        self.0.plan(AccessKind::Write)
    }

    async fn call(&self, cx: &ToolCx, args: UpdateTaskArgs) -> Result<Output, ToolError> {
        let texts = [
            ("notes", &args.notes),
            ("result_summary", &args.result_summary),
            ("result_path", &args.result_path),
            ("error_message", &args.error_message),
        ];
        for (key, text) in texts {
            check_length(key, text.as_deref().unwrap_or_default())?;
        }
        let stamp = self.0.stamp();
        let status = update_list(&*cx.vfs, &self.0.path, |list| {
            let at = list.position(&args.task_id)?;
            apply_update(&mut list.tasks[at], &args, &stamp, Timestamp::now())
        })
        .await?;
        Ok(Output::text(format!(
            "Updated task {} ({status}).",
            args.task_id
        )))
    }
}

/// Applies an update, and returns the status of the task.
fn apply_update(
    task: &mut TaskItem,
    args: &UpdateTaskArgs,
    stamp: &str,
    now: Timestamp,
) -> Result<String, String> {
    if let Some(status) = args.status {
        task.set("status", YamlValue::text(status.as_str()));
        match status {
            Status::InProgress => task.set("started_at", YamlValue::Text(python_iso(now))),
            Status::Completed | Status::Failed | Status::Cancelled => {
                task.set("completed_at", YamlValue::Text(python_iso(now)))
            }
            Status::Pending | Status::AwaitingCheck => {}
        }
    }
    if let Some(note) = args.notes.as_ref().filter(|note| !note.trim().is_empty()) {
        let before = task.text("notes");
        let line = format!("- [{stamp}] {note}");
        let notes = if before.is_empty() {
            line
        } else {
            format!("{before}\n{line}")
        };
        if notes.chars().count() > MAX_NOTES_CHARS {
            return Err(format!(
                "its notes take at most {MAX_NOTES_CHARS} characters; put long ones into a file"
            ));
        }
        task.set("notes", YamlValue::Text(notes));
    }
    let given = [
        ("result_summary", &args.result_summary),
        ("result_path", &args.result_path),
        ("error_message", &args.error_message),
    ];
    for (key, text) in given {
        if let Some(text) = text {
            task.set(key, YamlValue::text(text));
        }
    }
    task.set("last_checked_at", YamlValue::Text(python_iso(now)));
    let count = match task.get("check_count") {
        Some(YamlValue::Int(count)) => count.saturating_add(1),
        Some(_) | None => 1,
    };
    task.set("check_count", YamlValue::Int(count));
    Ok(task.text("status").to_owned())
}
