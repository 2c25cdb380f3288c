//! The tools to hand work to others, and to hear of it.

use crate::crew::{Crew, Order, TaskRecord, Wait};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Access, Effect, Risk};
use stead_tools::{
    Length, Output, Spellings, TitleForm, Tool, ToolCx, ToolError, TypedTool, typed,
};

/// Handing work over changes nothing by itself: what is done then is judged call by call.
const HANDS_OVER: Risk = Risk {
    effect: Effect::Reads,
    parallel_safe: true,
    repeatable: false,
};
/// The longest that one call waits.
const MAX_WAIT_SECONDS: u64 = 3600;
/// What the call itself may take beside waiting.
const MARGIN: Duration = Duration::from_secs(30);

/// All of them, for those who work for one session.
/// `no_helper` says why nothing may be handed to the built-in agent, if so.
pub(super) fn tools(crew: &Arc<Crew>, no_helper: Option<String>) -> Vec<Arc<dyn Tool>> {
    vec![
        typed(Task(crew.clone(), no_helper.clone())),
        typed(Send(crew.clone(), no_helper)),
        typed(List(crew.clone())),
        typed(Output_(crew.clone())),
        typed(Tasks(crew.clone())),
        typed(Cancel(crew.clone())),
        typed(WaitFor(crew.clone())),
    ]
}

fn tell(text: impl Into<String>) -> ToolError {
    ToolError::Tell(text.into())
}

/// How long to wait, from what a call says.
fn wait(background: Option<bool>, timeout: Option<u64>) -> Option<Wait> {
    match (background, timeout) {
        (Some(true), _) | (_, Some(0)) => Some(Wait::Background),
        (_, Some(seconds)) => Some(Wait::Upto(Duration::from_secs(
            seconds.min(MAX_WAIT_SECONDS),
        ))),
        (Some(false), None) => Some(Wait::Upto(Duration::from_secs(MAX_WAIT_SECONDS))),
        (None, None) => None,
    }
}

/// Waits as far as it was told to, and says what came of it.
async fn answer(
    crew: &Crew,
    cx: &ToolCx,
    (record, wait): (TaskRecord, Wait),
) -> Result<Output, ToolError> {
    let patience = match wait {
        Wait::Background => {
            return Ok(Output::text(started(
                &record,
                "It works in the background; you are told when it is done.",
            )));
        }
        Wait::Upto(patience) => patience,
    };
    let waited = tokio::select! {
        biased;
        waited = crew.wait(&record.task_id, patience) => waited,
        () = cx.cancel.cancelled() => {
            crew.cancel(&record.task_id).await;
            return Err(tell(format!("cancelled: {} was stopped", record.task_id)));
        }
    };
    let record = waited.unwrap_or(record);
    if record.status.is_final() {
        return Ok(ended(&record));
    }
    if record.awaiting_confirm {
        let how = "It waits for a person's decision (`stead approvals list`); you are told when it is done.";
        return Ok(Output::text(started(&record, how)));
    }
    let how = format!(
        "It is not done after {} s and goes on in the background; you are told when it is done.",
        patience.as_secs()
    );
    Ok(Output::text(started(&record, &how)))
}

fn started(record: &TaskRecord, how: &str) -> String {
    format!("{}\nstatus: {}\n{how}", names(record), record.standing())
}

fn names(record: &TaskRecord) -> String {
    let label = record
        .label
        .as_ref()
        .map_or(String::new(), |label| format!("\nlabel: {label}"));
    format!(
        "task_id: {}\nagent: {}\nsession_id: {}{label}",
        record.task_id, record.sub_agent_id, record.sub_session_id
    )
}

fn ended(record: &TaskRecord) -> Output {
    let text = format!(
        "{}\nstatus: {}\n\n{}",
        names(record),
        record.standing(),
        record.said()
    );
    Output {
        tasks: vec![record.task_id.clone()],
        failed: record.error_message.is_some(),
        ..Output::text(text).untrusted_if(record.untrusted)
    }
}

/// `task`
struct Task(Arc<Crew>, Option<String>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TaskArgs {
    /// Which agent does it; left out, the only one that may, or else general-purpose.
    #[serde(default)]
    agent: Option<String>,
    /// What it is about, in a few words.
    #[serde(default)]
    description: String,
    /// The whole task: the agent sees nothing else of this conversation. Left out, the description
    /// is the task.
    #[serde(default)]
    prompt: Option<String>,
    /// An earlier task, by id or label: its agent goes on, under its label, whatever else is named.
    #[serde(default)]
    task_id: Option<String>,
    /// Do not wait for it.
    #[serde(default)]
    background: Option<bool>,
    /// Seconds to wait; then it goes on in the background.
    #[serde(default)]
    timeout: Option<u64>,
    /// A name for it, to be used instead of its id.
    #[serde(default)]
    label: Option<String>,
}

impl TypedTool for Task {
    type Args = TaskArgs;
    const NAME: &'static str = "task";
    const ALIASES: &'static [&'static str] = &[
        "agent_spawn",
        "SubAgent",
        "spawn_agent",
        "agent.delegate",
        "spawn",
    ];
    const DESCRIPTION: &'static str = "Hand a task to another agent, which works on it in a conversation of its own and \
        reports back. Several calls in one step work side by side. Use it for work of several steps whose details need \
        not be seen here.";
    const RISK: Risk = HANDS_OVER;
    const SPELLINGS: Spellings = Spellings {
        names: &[
            ("subagent_type", "agent"),
            ("subagent_name", "agent"),
            ("agent_id", "agent"),
            ("task", "prompt"),
            ("run_in_background", "background"),
            ("timeout_seconds", "timeout"),
        ],
        values: &[],
    };

    fn accesses(&self, _: &TaskArgs) -> Vec<Access> {
        Vec::new()
    }

    fn titled(&self) -> Option<TitleForm> {
        Some(TitleForm::of::<super::title::SubAgent>(typed(Self(
            self.0.clone(),
            self.1.clone(),
        ))))
    }

    fn timeout(&self, _: &TaskArgs) -> Option<Duration> {
        Some(Duration::from_secs(MAX_WAIT_SECONDS) + MARGIN)
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
            return Err(tell("prompt is empty: say what is to be done"));
        }
        let no_helper = self.1.clone();
        let wait = wait(background, timeout);
        let handed = match task_id {
            Some(task) => self.0.send(&task, prompt, wait, no_helper.as_deref()).await,
            None => {
                self.0
                    .hand_over(Order {
                        agent,
                        description,
                        prompt,
                        label,
                        wait,
                        no_helper,
                    })
                    .await
            }
        };
        answer(&self.0, cx, handed.map_err(tell)?).await
    }
}

/// `agent_send`
struct Send(Arc<Crew>, Option<String>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SendArgs {
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

impl TypedTool for Send {
    type Args = SendArgs;
    const NAME: &'static str = "agent_send";
    const DESCRIPTION: &'static str = "Go on with an agent that worked on a task before: it remembers all of it. Also for one that was interrupted.";
    const RISK: Risk = HANDS_OVER;
    const SPELLINGS: Spellings = Spellings {
        names: &[
            ("agent_key", "to"),
            ("task_id", "to"),
            ("label", "to"),
            ("timeout_seconds", "timeout"),
        ],
        values: &[],
    };

    fn accesses(&self, _: &SendArgs) -> Vec<Access> {
        Vec::new()
    }

    fn timeout(&self, _: &SendArgs) -> Option<Duration> {
        Some(Duration::from_secs(MAX_WAIT_SECONDS) + MARGIN)
    }

    async fn call(&self, cx: &ToolCx, args: SendArgs) -> Result<Output, ToolError> {
        let patience = wait(args.background, args.timeout);
        let no_helper = self.1.as_deref();
        let handed = self
            .0
            .send(&args.to, args.message, patience, no_helper)
            .await
            .map_err(tell)?;
        answer(&self.0, cx, handed).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoArgs {}

/// `agent_list`
struct List(Arc<Crew>);

impl TypedTool for List {
    type Args = NoArgs;
    const NAME: &'static str = "agent_list";
    const ALIASES: &'static [&'static str] = &["list_subagents"];
    const DESCRIPTION: &'static str =
        "List the agents that worked for this session, each with its session and newest task.";
    const RISK: Risk = Risk::READS;
    const LENGTH: Length = Length::Bounded;

    fn accesses(&self, _: &NoArgs) -> Vec<Access> {
        Vec::new()
    }

    async fn call(&self, _: &ToolCx, _: NoArgs) -> Result<Output, ToolError> {
        let tasks = self.0.tasks().await.map_err(tell)?;
        let mut seen = std::collections::BTreeSet::new();
        let newest = tasks
            .iter()
            .rev()
            .filter(|task| seen.insert(task.sub_session_id.clone()));
        Ok(Output::text(rows(newest)))
    }
}

/// `task_list`
struct Tasks(Arc<Crew>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksArgs {
    /// Only those that are so: running, parked, completed, failed or cancelled.
    #[serde(default)]
    status: Option<String>,
}

impl TypedTool for Tasks {
    type Args = TasksArgs;
    const NAME: &'static str = "task_list";
    const DESCRIPTION: &'static str =
        "List the tasks that were handed over in this session, newest first.";
    const RISK: Risk = Risk::READS;
    const LENGTH: Length = Length::Bounded;
    const SPELLINGS: Spellings = Spellings {
        names: &[("status_filter", "status")],
        values: &[],
    };

    fn accesses(&self, _: &TasksArgs) -> Vec<Access> {
        Vec::new()
    }

    async fn call(&self, _: &ToolCx, args: TasksArgs) -> Result<Output, ToolError> {
        let tasks = self.0.tasks().await.map_err(tell)?;
        let wanted = args.status.map(|status| status.to_lowercase());
        let fits = |task: &&TaskRecord| {
            wanted
                .as_deref()
                .is_none_or(|wanted| wanted == task.standing())
        };
        Ok(Output::text(rows(tasks.iter().rev().filter(fits))))
    }
}

fn rows<'a>(tasks: impl Iterator<Item = &'a TaskRecord>) -> String {
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
            task.standing(),
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

/// `task_output`
struct Output_(Arc<Crew>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OutputArgs {
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

impl TypedTool for Output_ {
    type Args = OutputArgs;
    const NAME: &'static str = "task_output";
    const ALIASES: &'static [&'static str] = &["get_subagent_result"];
    const DESCRIPTION: &'static str = "How a task stands, and what came of it.";
    const RISK: Risk = Risk {
        effect: Effect::Reads,
        parallel_safe: true,
        repeatable: true,
    };

    fn accesses(&self, _: &OutputArgs) -> Vec<Access> {
        Vec::new()
    }

    fn timeout(&self, args: &OutputArgs) -> Option<Duration> {
        Some(Duration::from_secs(args.timeout.min(MAX_WAIT_SECONDS)) + MARGIN)
    }

    async fn call(&self, cx: &ToolCx, args: OutputArgs) -> Result<Output, ToolError> {
        let mut record = self.0.task(&args.task_id).await.map_err(tell)?;
        if args.block && !record.status.is_final() {
            let patience = Duration::from_secs(args.timeout.min(MAX_WAIT_SECONDS));
            tokio::select! {
                biased;
                waited = self.0.wait(&record.task_id, patience) => record = waited.unwrap_or(record),
                () = cx.cancel.cancelled() => return Err(tell("cancelled while waiting; the task goes on")),
            }
        }
        match record.status.is_final() {
            true => Ok(ended(&record)),
            false => Ok(Output::text(started(&record, "It is not done yet."))),
        }
    }
}

/// `task_cancel`
struct Cancel(Arc<Crew>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelArgs {
    /// The task, by id or label.
    task_id: String,
}

impl TypedTool for Cancel {
    type Args = CancelArgs;
    const NAME: &'static str = "task_cancel";
    const ALIASES: &'static [&'static str] = &["cancel_subagent"];
    const DESCRIPTION: &'static str = "Stop a task. What it did so far stays.";
    const RISK: Risk = HANDS_OVER;

    fn accesses(&self, _: &CancelArgs) -> Vec<Access> {
        Vec::new()
    }

    async fn call(&self, _: &ToolCx, args: CancelArgs) -> Result<Output, ToolError> {
        let record = self.0.task(&args.task_id).await.map_err(tell)?;
        if record.status.is_final() {
            return Err(tell(format!(
                "{} is {} already",
                record.task_id,
                record.standing()
            )));
        }
        if !self.0.cancel(&record.task_id).await {
            return Err(tell(format!(
                "{} is not at work in this process",
                record.task_id
            )));
        }
        let record = self.0.task(&record.task_id).await.map_err(tell)?;
        Ok(Output {
            failed: false,
            ..ended(&record)
        })
    }
}

/// `wait_tasks`
struct WaitFor(Arc<Crew>);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitArgs {
    /// Which, by id or label; left out, all that are at work.
    #[serde(default)]
    task_ids: Option<Vec<String>>,
    /// Seconds to wait at most.
    #[serde(default = "minute")]
    timeout: u64,
}

impl TypedTool for WaitFor {
    type Args = WaitArgs;
    const NAME: &'static str = "wait_tasks";
    const ALIASES: &'static [&'static str] = &["wait_async_results"];
    const DESCRIPTION: &'static str = "Wait until tasks are done, and get what came of them.";
    const RISK: Risk = Risk {
        effect: Effect::Reads,
        parallel_safe: false,
        repeatable: true,
    };
    const SPELLINGS: Spellings = Spellings {
        names: &[("timeout_seconds", "timeout")],
        values: &[],
    };

    fn accesses(&self, _: &WaitArgs) -> Vec<Access> {
        Vec::new()
    }

    fn timeout(&self, args: &WaitArgs) -> Option<Duration> {
        Some(Duration::from_secs(args.timeout.min(MAX_WAIT_SECONDS)) + MARGIN)
    }

    async fn call(&self, cx: &ToolCx, args: WaitArgs) -> Result<Output, ToolError> {
        let mut wanted = Vec::new();
        match args.task_ids {
            Some(names) => {
                for name in names {
                    wanted.push(self.0.task(&name).await.map_err(tell)?);
                }
            }
            None => wanted.extend(
                self.0
                    .tasks()
                    .await
                    .map_err(tell)?
                    .into_iter()
                    .filter(|task| !task.status.is_final()),
            ),
        }
        if wanted.is_empty() {
            return Err(tell("there is no task to wait for"));
        }
        let patience = Duration::from_secs(args.timeout.min(MAX_WAIT_SECONDS));
        let all = futures_util::future::join_all(
            wanted
                .iter()
                .map(|task| self.0.wait(&task.task_id, patience)),
        );
        let waited = tokio::select! {
            biased;
            waited = all => waited,
            () = cx.cancel.cancelled() => return Err(tell("cancelled while waiting; the tasks go on")),
        };
        let records: Vec<TaskRecord> = waited
            .into_iter()
            .zip(wanted)
            .map(|(now, then)| now.unwrap_or(then))
            .collect();
        let (done, open): (Vec<&TaskRecord>, Vec<&TaskRecord>) =
            records.iter().partition(|task| task.status.is_final());
        let texts: Vec<String> = done
            .iter()
            .map(|task| {
                format!(
                    "{}\nstatus: {}\n\n{}",
                    names(task),
                    task.standing(),
                    task.said()
                )
            })
            .chain(open.iter().map(|task| started(task, "It is not done yet.")))
            .collect();
        let untrusted = done.iter().any(|task| task.untrusted);
        let tasks = done.iter().map(|task| task.task_id.clone()).collect();
        Ok(Output {
            tasks,
            ..Output::text(texts.join("\n\n---\n\n")).untrusted_if(untrusted)
        })
    }
}
