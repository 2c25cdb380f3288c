//! The tools that delegate tasks to subagents and report on them.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use crate::subagents::{Subagents, TaskRecord, TaskRequest, TaskWait};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{ArgumentAliases, Risk, ToolEffect};
use stead_tools::{
    CallPlan, Output, Tool, ToolCx, ToolDef, ToolError, TypedTool, builtin, typed_tool,
};

/// The risk of delegating: it changes nothing by itself, because each call of a subagent is judged.
const DELEGATION_RISK: Risk = Risk {
    effect: ToolEffect::Reads,
    parallel_safe: true,
    repeatable: false,
};
/// The longest time that one call waits.
const MAX_WAIT_SECONDS: u64 = 3600;
/// The time that a call may take besides waiting.
const CALL_OVERHEAD: Duration = Duration::from_secs(30);

/// Returns the delegation tools for the subagents of one session. `builtin_agent_refusal` says why
/// the built-in agent may not be used, if so.
pub(super) fn tools(
    subagents: &Arc<Subagents>,
    builtin_agent_refusal: Option<String>,
) -> Vec<Arc<dyn Tool>> {
    vec![
        typed_tool(TaskTool(subagents.clone(), builtin_agent_refusal.clone())),
        typed_tool(AgentSendTool(subagents.clone(), builtin_agent_refusal)),
        typed_tool(AgentListTool(subagents.clone())),
        typed_tool(DelegationOutputTool(subagents.clone())),
        typed_tool(DelegationListTool(subagents.clone())),
        typed_tool(DelegationCancelTool(subagents.clone())),
        typed_tool(DelegationWaitTool(subagents.clone())),
    ]
}

/// Returns the plan of a call that waits up to `seconds`.
fn waiting_plan(seconds: u64) -> CallPlan {
    let wait = Duration::from_secs(seconds.min(MAX_WAIT_SECONDS));
    CallPlan::default().with_timeout(wait + CALL_OVERHEAD)
}

/// Returns an error that is shown to the model.
fn respond(text: impl Into<String>) -> ToolError {
    ToolError::RespondToModel(text.into())
}

/// Returns how long to wait, from the arguments of a call.
fn requested_wait(background: Option<bool>, timeout: Option<u64>) -> Option<TaskWait> {
    match (background, timeout) {
        (Some(true), _) | (_, Some(0)) => Some(TaskWait::Background),
        (_, Some(seconds)) => Some(TaskWait::UpTo(Duration::from_secs(
            seconds.min(MAX_WAIT_SECONDS),
        ))),
        (Some(false), None) => Some(TaskWait::UpTo(Duration::from_secs(MAX_WAIT_SECONDS))),
        (None, None) => None,
    }
}

/// Waits for a task as long as requested, and reports its state or result.
async fn wait_and_report(
    subagents: &Subagents,
    cx: &ToolCx,
    (record, wait): (TaskRecord, TaskWait),
) -> Result<Output, ToolError> {
    let timeout = match wait {
        TaskWait::Background => {
            return Ok(Output::text(render_started(
                &record,
                "It works in the background; you are told when it is done.",
            )));
        }
        TaskWait::UpTo(timeout) => timeout,
    };
    let waited = tokio::select! {
        biased;
        waited = subagents.wait(&record.task_id, timeout) => waited,
        () = cx.cancel.cancelled() => {
            subagents.cancel(&record.task_id).await;
            return Err(respond(format!("cancelled: {} was stopped", record.task_id)));
        }
    };
    let record = waited.unwrap_or(record);
    if record.status.is_final() {
        return Ok(render_end(&record));
    }
    if record.awaiting_confirm {
        let note = "It waits for a person's decision; you are told when it is done.";
        return Ok(Output::text(render_started(&record, note)));
    }
    let note = format!(
        "It did not finish within {} s and continues in the background; you will be told when it ends.",
        timeout.as_secs()
    );
    Ok(Output::text(render_started(&record, &note)))
}

/// Returns the state of a task that has not ended, followed by a note.
fn render_started(record: &TaskRecord, note: &str) -> String {
    format!(
        "{}\nstatus: {}\n{note}",
        render_ids(record),
        record.status_text()
    )
}

fn render_ids(record: &TaskRecord) -> String {
    let label = record
        .label
        .as_ref()
        .map_or(String::new(), |label| format!("\nlabel: {label}"));
    format!(
        "task_id: {}\nagent: {}\nsession_id: {}{label}",
        record.task_id, record.sub_agent_id, record.sub_session_id
    )
}

/// Returns the result of a task that ended.
fn render_end(record: &TaskRecord) -> Output {
    let text = format!(
        "{}\nstatus: {}\n\n{}",
        render_ids(record),
        record.status_text(),
        record.result_text()
    );
    Output {
        finished_tasks: vec![record.task_id.clone()],
        failed: record.error_message.is_some(),
        ..Output::text(text).tainted_by(record.result_taint())
    }
}

/// The tool `task`.
struct TaskTool(Arc<Subagents>, Option<String>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskArgs {
    /// Left out: the only one there is, or else general-purpose.
    #[serde(default)]
    agent: Option<String>,
    /// A few words.
    #[serde(default)]
    description: String,
    /// The whole task: the agent sees nothing else of this conversation.
    #[serde(default)]
    prompt: Option<String>,
    /// An earlier task (id or label) whose agent goes on.
    #[serde(default)]
    task_id: Option<String>,
    /// Do not wait for it.
    #[serde(default)]
    background: Option<bool>,
    /// Seconds to wait; then it goes on in the background.
    #[serde(default)]
    timeout: Option<u64>,
    /// A name to use instead of its id.
    #[serde(default)]
    label: Option<String>,
}

impl TypedTool for TaskTool {
    type Args = TaskArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::TASK,
        DELEGATION_RISK,
        "Gives a task to another agent, which works on it in a conversation of its own and \
        reports back. Calls in one step work side by side.",
    )
    .argument_aliases(ArgumentAliases {
        // Whether results are shown to the person is up to the front end, and the end of a
        // background task is always told.
        ignored: &["expose_to_user", "notify"],
        scaled: &[("timeout_minutes", "timeout", 60)],
        ..ArgumentAliases::of_names(&[
            ("subagent_type", "agent"),
            ("subagent_name", "agent"),
            ("agent_id", "agent"),
            ("task", "prompt"),
            ("run_in_background", "background"),
            ("timeout_seconds", "timeout"),
        ])
    })
    .title_form::<super::title::SubAgentTitle>();

    fn plan(&self, _: &TaskArgs) -> CallPlan {
        waiting_plan(MAX_WAIT_SECONDS)
    }

    async fn call(&self, cx: &ToolCx, args: TaskArgs) -> Result<Output, ToolError> {
        let TaskArgs {
            agent,
            description,
            prompt,
            task_id,
            background,
            timeout,
            label,
        } = args;
        let prompt = prompt
            .filter(|prompt| !prompt.trim().is_empty())
            .unwrap_or_else(|| description.clone());
        if prompt.trim().is_empty() {
            return Err(respond("prompt is empty: say what is to be done"));
        }
        let builtin_agent_refusal = self.1.clone();
        let wait = requested_wait(background, timeout);
        let started = match task_id {
            Some(task) => {
                self.0
                    .continue_task(&task, prompt, wait, builtin_agent_refusal.as_deref())
                    .await
            }
            None => {
                self.0
                    .start_task(TaskRequest {
                        agent,
                        description,
                        prompt,
                        label,
                        wait,
                        builtin_agent_refusal,
                    })
                    .await
            }
        };
        wait_and_report(&self.0, cx, started.map_err(respond)?).await
    }
}

/// The tool `agent_send`.
struct AgentSendTool(Arc<Subagents>, Option<String>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentSendArgs {
    /// The task, by id, label or session.
    to: String,
    /// What to say.
    message: String,
    /// Do not wait for the answer.
    #[serde(default)]
    background: Option<bool>,
    /// Seconds to wait; then it goes on in the background.
    #[serde(default)]
    timeout: Option<u64>,
}

impl TypedTool for AgentSendTool {
    type Args = AgentSendArgs;
    const DEF: ToolDef = ToolDef::new(builtin::AGENT_SEND, DELEGATION_RISK, "Go on with an agent that worked on a task before: it remembers all of it. Also for one that was interrupted.").argument_aliases(ArgumentAliases::of_names(&[
            ("agent_key", "to"),
            ("task_id", "to"),
            ("label", "to"),
            ("timeout_seconds", "timeout"),
        ]));

    fn plan(&self, args: &AgentSendArgs) -> CallPlan {
        // A grant is limited to this subagent.
        waiting_plan(MAX_WAIT_SECONDS).with_named_paths([args.to.clone()])
    }

    async fn call(&self, cx: &ToolCx, args: AgentSendArgs) -> Result<Output, ToolError> {
        let wait = requested_wait(args.background, args.timeout);
        let builtin_agent_refusal = self.1.as_deref();
        let started = self
            .0
            .continue_task(&args.to, args.message, wait, builtin_agent_refusal)
            .await
            .map_err(respond)?;
        wait_and_report(&self.0, cx, started).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AgentListArgs {}

/// The tool `agent_list`.
struct AgentListTool(Arc<Subagents>);

impl TypedTool for AgentListTool {
    type Args = AgentListArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::AGENT_LIST,
        Risk::READS,
        "List the agents that worked for this session, each with its session and newest task.",
    )
    .bounded();

    async fn call(&self, _: &ToolCx, _: AgentListArgs) -> Result<Output, ToolError> {
        let tasks = self.0.tasks().await.map_err(respond)?;
        let mut seen = std::collections::BTreeSet::new();
        let newest = tasks
            .iter()
            .rev()
            .filter(|task| seen.insert(task.sub_session_id.clone()));
        Ok(Output::text(render_rows(newest)))
    }
}

/// The tool `delegation_list`.
struct DelegationListTool(Arc<Subagents>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelegationListArgs {
    /// Only those that are so: running, parked, completed, failed or cancelled.
    #[serde(default)]
    status: Option<String>,
}

impl TypedTool for DelegationListTool {
    type Args = DelegationListArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::DELEGATION_LIST,
        Risk::READS,
        "List the tasks that were handed over in this session, newest first.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[("status_filter", "status")]));

    async fn call(&self, _: &ToolCx, args: DelegationListArgs) -> Result<Output, ToolError> {
        let tasks = self.0.tasks().await.map_err(respond)?;
        let status = args.status.map(|status| status.to_lowercase());
        let fits = |task: &&TaskRecord| {
            status
                .as_deref()
                .is_none_or(|status| status == task.status_text())
        };
        Ok(Output::text(render_rows(tasks.iter().rev().filter(fits))))
    }
}

/// Returns one line for each task.
fn render_rows<'a>(tasks: impl Iterator<Item = &'a TaskRecord>) -> String {
    let row = |task: &TaskRecord| {
        let label = task
            .label
            .as_ref()
            .map_or(String::new(), |label| format!(" {label:?}"));
        let about: String = task.description.chars().take(80).collect();
        format!(
            "{} {}{label} {} {} {about}",
            task.task_id,
            task.sub_agent_id,
            task.status_text(),
            task.sub_session_id
        )
    };
    let rows: Vec<String> = tasks.map(row).collect();
    if rows.is_empty() {
        "none".to_owned()
    } else {
        rows.join("\n")
    }
}

/// The tool `delegation_output`.
struct DelegationOutputTool(Arc<Subagents>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelegationOutputArgs {
    /// The task, by id or label.
    task_id: String,
    /// Wait for its end.
    #[serde(default)]
    block: bool,
    /// Seconds to wait at most.
    #[serde(default = "minute")]
    timeout: u64,
}

fn minute() -> u64 {
    60
}

impl TypedTool for DelegationOutputTool {
    type Args = DelegationOutputArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::DELEGATION_OUTPUT,
        Risk {
            effect: ToolEffect::Reads,
            parallel_safe: true,
            repeatable: true,
        },
        "How a task stands, and what came of it.",
    )
    .argument_aliases(TASK_ID);

    fn plan(&self, args: &DelegationOutputArgs) -> CallPlan {
        waiting_plan(args.timeout)
    }

    async fn call(&self, cx: &ToolCx, args: DelegationOutputArgs) -> Result<Output, ToolError> {
        let mut record = self.0.task(&args.task_id).await.map_err(respond)?;
        if args.block && !record.status.is_final() {
            let timeout = Duration::from_secs(args.timeout.min(MAX_WAIT_SECONDS));
            tokio::select! {
                biased;
                waited = self.0.wait(&record.task_id, timeout) => record = waited.unwrap_or(record),
                () = cx.cancel.cancelled() => return Err(respond("cancelled while waiting; the task goes on")),
            }
        }
        match record.status.is_final() {
            true => Ok(render_end(&record)),
            false => Ok(Output::text(render_started(&record, "It is not done yet."))),
        }
    }
}

/// Other names of the id of a task.
const TASK_ID: ArgumentAliases =
    ArgumentAliases::of_names(&[("id", "task_id"), ("timeout_seconds", "timeout")]);

/// The tool `delegation_cancel`.
struct DelegationCancelTool(Arc<Subagents>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelegationCancelArgs {
    /// The task, by id or label.
    task_id: String,
}

impl TypedTool for DelegationCancelTool {
    type Args = DelegationCancelArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::DELEGATION_CANCEL,
        DELEGATION_RISK,
        "Stop a task. What it did so far stays.",
    )
    .argument_aliases(TASK_ID);

    async fn call(&self, _: &ToolCx, args: DelegationCancelArgs) -> Result<Output, ToolError> {
        let record = self.0.task(&args.task_id).await.map_err(respond)?;
        if record.status.is_final() {
            return Err(respond(format!(
                "{} is {} already",
                record.task_id,
                record.status_text()
            )));
        }
        if !self.0.cancel(&record.task_id).await {
            return Err(respond(format!(
                "{} is not at work in this process",
                record.task_id
            )));
        }
        let record = self.0.task(&record.task_id).await.map_err(respond)?;
        Ok(Output {
            failed: false,
            ..render_end(&record)
        })
    }
}

/// The tool `delegation_wait`.
struct DelegationWaitTool(Arc<Subagents>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DelegationWaitArgs {
    /// Which, by id or label; left out, all that are at work.
    #[serde(default)]
    task_ids: Option<Vec<String>>,
    /// Seconds to wait at most.
    #[serde(default = "minute")]
    timeout: u64,
}

impl TypedTool for DelegationWaitTool {
    type Args = DelegationWaitArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::DELEGATION_WAIT,
        Risk {
            effect: ToolEffect::Reads,
            parallel_safe: false,
            repeatable: true,
        },
        "Wait until tasks are done, and get what came of them.",
    )
    .argument_aliases(ArgumentAliases::of_names(&[("timeout_seconds", "timeout")]));

    fn plan(&self, args: &DelegationWaitArgs) -> CallPlan {
        waiting_plan(args.timeout)
    }

    async fn call(&self, cx: &ToolCx, args: DelegationWaitArgs) -> Result<Output, ToolError> {
        let mut tasks = Vec::new();
        match args.task_ids {
            Some(names) => {
                for name in names {
                    tasks.push(self.0.task(&name).await.map_err(respond)?);
                }
            }
            None => tasks.extend(
                self.0
                    .tasks()
                    .await
                    .map_err(respond)?
                    .into_iter()
                    .filter(|task| !task.status.is_final()),
            ),
        }
        if tasks.is_empty() {
            return Err(respond("there is no task to wait for"));
        }
        let timeout = Duration::from_secs(args.timeout.min(MAX_WAIT_SECONDS));
        let all = futures_util::future::join_all(
            tasks.iter().map(|task| self.0.wait(&task.task_id, timeout)),
        );
        let waited = tokio::select! {
            biased;
            waited = all => waited,
            () = cx.cancel.cancelled() => return Err(respond("cancelled while waiting; the tasks go on")),
        };
        let records: Vec<TaskRecord> = waited
            .into_iter()
            .zip(tasks)
            .map(|(current, earlier)| current.unwrap_or(earlier))
            .collect();
        let (done, open): (Vec<&TaskRecord>, Vec<&TaskRecord>) =
            records.iter().partition(|task| task.status.is_final());
        let texts: Vec<String> = done
            .iter()
            .map(|task| {
                format!(
                    "{}\nstatus: {}\n\n{}",
                    render_ids(task),
                    task.status_text(),
                    task.result_text()
                )
            })
            .chain(
                open.iter()
                    .map(|task| render_started(task, "It is not done yet.")),
            )
            .collect();
        let taint: Vec<_> = done.iter().flat_map(|task| task.result_taint()).collect();
        let finished_tasks = done.iter().map(|task| task.task_id.clone()).collect();
        Ok(Output {
            finished_tasks,
            ..Output::text(texts.join("\n\n---\n\n")).tainted_by(taint)
        })
    }
}
