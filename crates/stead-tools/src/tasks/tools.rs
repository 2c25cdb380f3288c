//! The `create_task`, `list_tasks`, `get_task` and `delete_task` tools: tasks in a file that
//! outlive the conversation. Tasks of subagents are another thing.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes).

use super::list::{Priority, Status, TaskItem};
use super::update::UpdateTask;
use super::{load, update_list};
use crate::typed::tool_family;
use crate::{CallPlan, Output, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt::Write;
use stead_core::{
    AccessKind, ArgumentAliases, Exposure, PathAccess, PathScope, Risk, ToolKind, YamlValue,
};
use stead_vfs::VPath;

const CREATE_TASK: ToolIdentity = ToolIdentity::new("create_task", ToolKind::Task)
    .aliases(&["TaskCreate"])
    .listed_as(&["task_tracker"])
    .exposed(Exposure::OnDemand);
const LIST_TASKS: ToolIdentity = ToolIdentity::new("list_tasks", ToolKind::Task)
    .aliases(&["TaskList"])
    .exposed(Exposure::OnDemand);
const GET_TASK: ToolIdentity = ToolIdentity::new("get_task", ToolKind::Task)
    .aliases(&["TaskGet"])
    .exposed(Exposure::OnDemand);
const DELETE_TASK: ToolIdentity =
    ToolIdentity::new("delete_task", ToolKind::Task).exposed(Exposure::OnDemand);

/// The most tasks of a list.
const MAX_TASKS: usize = 1000;
/// The most characters of a text argument.
const MAX_TEXT_CHARS: usize = 2000;
/// The most bytes of a task's metadata.
const MAX_METADATA_BYTES: usize = 4096;
/// The most tasks that one result lists.
const MAX_LISTED: usize = 200;
/// The most characters of a description in a list.
const LISTED_CHARS: usize = 100;

tool_family! {
    /// The tools for the list of tasks in the file `path`. Notes are dated in `timezone`, or in the
    /// machine's time zone.
    pub fn task_tools(path: &VPath, timezone: Option<&str>) {
        CreateTask => CreateTask(TaskFile::new(path, timezone)),
        UpdateTask => UpdateTask(TaskFile::new(path, timezone)),
        ListTasks => ListTasks(TaskFile::new(path, timezone)),
        GetTask => GetTask(TaskFile::new(path, timezone)),
        DeleteTask => DeleteTask(TaskFile::new(path, timezone)),
    }
}

/// The file that holds the tasks.
pub(super) struct TaskFile {
    pub(super) path: VPath,
    timezone: Option<String>,
}

impl TaskFile {
    fn new(path: &VPath, timezone: Option<&str>) -> Self {
        Self {
            path: path.clone(),
            timezone: timezone.map(str::to_owned),
        }
    }

    pub(super) fn plan(&self, kind: AccessKind) -> CallPlan {
        CallPlan::uses([PathAccess {
            path: self.path.as_str().to_owned(),
            kind,
            scope: PathScope::Content,
        }])
    }

    /// Returns the current time, in the format of notes.
    pub(super) fn stamp(&self) -> String {
        let now = jiff::Zoned::now();
        let there = self
            .timezone
            .as_deref()
            .and_then(|zone| now.in_tz(zone).ok())
            .unwrap_or(now);
        there.strftime("%Y-%m-%d %H:%M %Z").to_string()
    }
}

struct CreateTask(TaskFile);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CreateTaskArgs {
    /// What is to be done, so that a later conversation understands it.
    description: String,
    /// Its kind: research, deployment, batch, monitoring, custom or another word.
    #[serde(rename = "type")]
    kind: String,
    /// How much it matters.
    #[serde(default)]
    priority: Priority,
    /// How long it will probably take.
    #[serde(default)]
    expected_duration_minutes: Option<u32>,
    /// More about it, as keys and values.
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

impl TypedTool for CreateTask {
    type Args = CreateTaskArgs;
    const DEF: ToolDef = ToolDef::new(
        CREATE_TASK,
        Risk::WRITES,
        "Notes a task down that outlives this conversation: work that goes on later, runs \
        elsewhere, or must be looked after. For the steps of the work at hand use write_todos.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases {
        joined: &[("subject", "description")],
        defaults: &[("type", "custom")],
        ..ArgumentAliases::of_names(&[("subject", "description")])
    });

    fn plan(&self, _: &CreateTaskArgs) -> CallPlan {
        self.0.plan(AccessKind::Write)
    }

    async fn call(&self, cx: &ToolCx, args: CreateTaskArgs) -> Result<Output, ToolError> {
        check_length("description", &args.description)?;
        check_length("type", &args.kind)?;
        if args.description.trim().is_empty() || args.kind.trim().is_empty() {
            return Err(ToolError::RespondToModel(
                "a task needs a `description` and a `type`".to_owned(),
            ));
        }
        let metadata = Value::Object(args.metadata.unwrap_or_default());
        if metadata.to_string().len() > MAX_METADATA_BYTES {
            return Err(ToolError::RespondToModel(format!(
                "`metadata` takes at most {MAX_METADATA_BYTES} bytes"
            )));
        }
        let id = uuid::Uuid::now_v7().to_string();
        let mut task = TaskItem::new(
            id.clone(),
            args.kind,
            args.description,
            args.priority,
            Timestamp::now(),
        );
        if let Some(minutes) = args.expected_duration_minutes {
            task.set("expected_duration_minutes", YamlValue::Int(minutes.into()));
        }
        task.set("metadata", YamlValue::from(&metadata));
        update_list(&*cx.vfs, &self.0.path, |list| {
            if list.tasks.len() >= MAX_TASKS {
                return Err(format!(
                    "there are {MAX_TASKS} tasks already; delete some that are done"
                ));
            }
            list.tasks.push(task.clone());
            Ok(())
        })
        .await?;
        Ok(Output::text(format!(
            "Created task {id} (pending). Use update_task to report progress."
        )))
    }
}

struct ListTasks(TaskFile);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListTasksArgs {
    /// Only those that have come so far.
    #[serde(default)]
    status: Option<Status>,
    /// Only those of this kind.
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

impl TypedTool for ListTasks {
    type Args = ListTasksArgs;
    const DEF: ToolDef = ToolDef::new(LIST_TASKS, Risk::READS, "Lists the tasks that outlive conversations, the most urgent first, all or those of a status or type.").bounded();

    fn plan(&self, _: &ListTasksArgs) -> CallPlan {
        self.0.plan(AccessKind::Read)
    }

    async fn call(&self, cx: &ToolCx, args: ListTasksArgs) -> Result<Output, ToolError> {
        let (list, _) = load(&*cx.vfs, &self.0.path).await?;
        let wanted = |task: &&TaskItem| {
            args.status
                .is_none_or(|status| task.status() == Some(status))
                && args
                    .kind
                    .as_deref()
                    .is_none_or(|kind| task.text("type") == kind)
        };
        let mut tasks: Vec<&TaskItem> = list.tasks.iter().filter(wanted).collect();
        tasks.sort_by(|a, b| {
            (a.priority(), a.text("created_at")).cmp(&(b.priority(), b.text("created_at")))
        });
        if tasks.is_empty() {
            let text = if list.tasks.is_empty() {
                "There are no tasks."
            } else {
                "There are no such tasks."
            };
            return Ok(Output::text(text));
        }
        let mut text = format!("{} of {} tasks:", tasks.len(), list.tasks.len());
        for task in tasks.iter().take(MAX_LISTED) {
            let _ = write!(text, "\n{}", render_line(task));
        }
        if tasks.len() > MAX_LISTED {
            let _ = write!(
                text,
                "\n[{} more; ask for a status or type]",
                tasks.len() - MAX_LISTED
            );
        }
        Ok(Output::text(text))
    }
}

/// Formats a task on one line.
fn render_line(task: &TaskItem) -> String {
    let words: Vec<&str> = task.text("description").split_whitespace().collect();
    let mut description = words.join(" ");
    if let Some((end, _)) = description.char_indices().nth(LISTED_CHARS) {
        description.truncate(end);
        description.push('…');
    }
    let priority = match task.priority() {
        Priority::Normal => String::new(),
        other => format!(", {}", other.as_str()),
    };
    format!(
        "- {} [{}{priority}] {}: {description}",
        task.text("id"),
        task.text("status"),
        task.text("type")
    )
}

struct GetTask(TaskFile);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskIdArgs {
    /// The task, as list_tasks names it.
    task_id: String,
}

impl TypedTool for GetTask {
    type Args = TaskIdArgs;
    const DEF: ToolDef = ToolDef::new(GET_TASK, Risk::READS, "Shows all that is known of a task.");

    fn plan(&self, _: &TaskIdArgs) -> CallPlan {
        self.0.plan(AccessKind::Read)
    }

    async fn call(&self, cx: &ToolCx, args: TaskIdArgs) -> Result<Output, ToolError> {
        let (list, _) = load(&*cx.vfs, &self.0.path).await?;
        let at = list
            .position(&args.task_id)
            .map_err(ToolError::RespondToModel)?;
        Ok(Output::text(list.tasks[at].render().trim_end()))
    }
}

struct DeleteTask(TaskFile);

impl TypedTool for DeleteTask {
    type Args = TaskIdArgs;
    const DEF: ToolDef = ToolDef::new(
        DELETE_TASK,
        Risk::WRITES,
        "Deletes a task that is completed, failed or cancelled.",
    )
    .bounded();

    fn plan(&self, _: &TaskIdArgs) -> CallPlan {
        self.0.plan(AccessKind::Write)
    }

    async fn call(&self, cx: &ToolCx, args: TaskIdArgs) -> Result<Output, ToolError> {
        update_list(&*cx.vfs, &self.0.path, |list| {
            let at = list.position(&args.task_id)?;
            match list.tasks[at].status() {
                Some(status) if status.is_final() => drop(list.tasks.remove(at)),
                Some(_) | None => {
                    let status = list.tasks[at].text("status");
                    return Err(format!(
                        "the task is {status}; complete or cancel it with update_task first"
                    ));
                }
            }
            Ok(())
        })
        .await?;
        Ok(Output::text(format!("Deleted task {}.", args.task_id)))
    }
}

/// Refuses a text that is too long.
pub(super) fn check_length(key: &str, text: &str) -> Result<(), ToolError> {
    let chars = text.chars().count();
    match chars > MAX_TEXT_CHARS {
        true => Err(ToolError::RespondToModel(format!(
            "`{key}` has {chars} characters; the limit is {MAX_TEXT_CHARS}"
        ))),
        false => Ok(()),
    }
}
