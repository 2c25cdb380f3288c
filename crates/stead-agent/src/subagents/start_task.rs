//! Delegating a task to a subagent, and continuing an earlier one.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use super::bounds::child_files;
use super::run_task::{ChildSession, TaskAssignment};
use super::{DelegationBounds, DelegationContext, Subagents, TaskIdentity, TaskRecord, TaskStatus};
use crate::Agent;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Block, SessionId};
use stead_tools::builtin::{DELEGATION_CANCEL, DELEGATION_WAIT};
use stead_workspace::{AgentRole, AgentSpec};

/// A task to delegate.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRequest {
    /// The agent; `None` means the only one that may be used, or else the built-in one.
    pub agent: Option<String>,
    /// A short description.
    pub description: String,
    /// The text of the task.
    pub prompt: String,
    /// The label.
    pub label: Option<String>,
    /// Whether and how long to wait; `None` means as the definition of the agent says.
    pub wait: Option<TaskWait>,
    /// Why the built-in agent may not be used, if so.
    pub builtin_agent_refusal: Option<String>,
}

/// Whether to wait for a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskWait {
    /// Wait this long. After that the task continues in the background.
    UpTo(Duration),
    /// Do not wait.
    Background,
}

impl Subagents {
    /// Starts a task. Returns its record and whether to wait. The error tells the model what to do
    /// instead.
    pub async fn start_task(
        self: &Arc<Self>,
        request: TaskRequest,
    ) -> Result<(TaskRecord, TaskWait), String> {
        let context = self
            .run_context()
            .ok_or("tasks can be handed over in a session only")?;
        let max_depth = self.workspace_agent().policy().max_subagent_depth;
        if context.depth >= max_depth {
            return Err(format!(
                "a task may go through {max_depth} hands at most (policy.max_subagent_depth): do this one yourself"
            ));
        }
        let refusal = request.builtin_agent_refusal.as_deref();
        let spec = self
            .find_agent(&context, request.agent.as_deref(), refusal)
            .await?;
        let files = child_files(&spec)?;
        let agent = self.child_agent(&spec)?;
        self.check_label_free(request.label.as_deref()).await?;
        let task = format!("task_{}", fresh_task_id());
        let session = SessionId::new(format!("sub-{}", fresh_task_id()))
            .map_err(|error| error.to_string())?;
        let identity = TaskIdentity {
            task: task.clone(),
            agent: spec.name.clone(),
            label: request.label.clone(),
        };
        let origin = self
            .delegation_bounds(&context)
            .into_spawned(identity, files);
        let wait = request.wait.unwrap_or_else(|| self.default_wait(&spec));
        let names = (task, request.label, request.description);
        let record = self.record_task(&context, &spec, session, names).await?;
        let cancel = context.cancel.child_token();
        self.spawn_task(
            record.clone(),
            TaskAssignment {
                agent,
                session: ChildSession::New(origin),
                input: vec![Block::text(request.prompt)],
                context,
                cancel,
                schema: spec.result_schema.clone(),
            },
        );
        Ok((record, wait))
    }

    /// Returns the agent that works on a task.
    fn child_agent(&self, spec: &Arc<AgentSpec>) -> Result<Arc<Agent>, String> {
        self.workspace_agent()
            .agents()
            .agent(spec, AgentRole::Child)
            .map_err(|error| format!("{}: {error}", spec.name))
    }

    /// Checks that a label is valid and that no open task has it.
    async fn check_label_free(&self, label: Option<&str>) -> Result<(), String> {
        self.records.load().await?;
        let Some(label) = label else { return Ok(()) };
        check_label(label)?;
        let is_taken =
            |task: &TaskRecord| task.label.as_deref() == Some(label) && !task.status.is_final();
        match self.records.all().iter().any(is_taken) {
            true => Err(format!(
                "the label {label:?} is taken by a task that is at work; choose another"
            )),
            false => Ok(()),
        }
    }

    /// Starts a new task in the session of an earlier one.
    pub async fn continue_task(
        self: &Arc<Self>,
        to: &str,
        message: String,
        wait: Option<TaskWait>,
        builtin_agent_refusal: Option<&str>,
    ) -> Result<(TaskRecord, TaskWait), String> {
        let context = self
            .run_context()
            .ok_or("tasks can be handed over in a session only")?;
        let before = self.task(to).await?;
        if self.lock_running().contains_key(&before.task_id) {
            return Err(format!(
                "{} is still at work; wait for it ({}) or stop it ({})",
                before.task_id, DELEGATION_WAIT.name, DELEGATION_CANCEL.name
            ));
        }
        if before.is_parked() {
            return Err(format!(
                "{} waits for a person's decision, and goes on once that is given",
                before.task_id
            ));
        }
        let spec = self
            .find_agent(&context, Some(&before.sub_agent_id), builtin_agent_refusal)
            .await?;
        let agent = self.child_agent(&spec)?;
        let wait = wait.unwrap_or_else(|| self.default_wait(&spec));
        let task = format!("task_{}", fresh_task_id());
        let label = before.label.clone();
        let identity = (task, label, before.description.clone());
        let record = self
            .record_task(&context, &spec, before.sub_session_id.clone(), identity)
            .await?;
        let input = vec![Block::text(message)];
        let cancel = context.cancel.child_token();
        // The permissions of the parent may have changed since.
        let session =
            ChildSession::Existing(self.delegation_bounds(&context).into_ceiling_setting());
        self.spawn_task(
            record.clone(),
            TaskAssignment {
                agent,
                session,
                input,
                context,
                cancel,
                schema: spec.result_schema.clone(),
            },
        );
        Ok((record, wait))
    }

    /// Returns the bounds of subagents in the current context.
    fn delegation_bounds(&self, context: &DelegationContext) -> DelegationBounds {
        DelegationBounds::new(
            self.session.clone(),
            &context.permissions,
            context.depth,
            context.tree.clone(),
        )
    }

    /// Returns the agent with this name if the acting agent may delegate to it. Without a name, the
    /// only agent that may be used is returned, or else the built-in one.
    async fn find_agent(
        &self,
        context: &DelegationContext,
        name: Option<&str>,
        builtin_agent_refusal: Option<&str>,
    ) -> Result<Arc<AgentSpec>, String> {
        let files = self
            .workspace_agent()
            .parts
            .place
            .files(&self.owner, &context.tree, None);
        let files = self.workspace_agent().workspace().prompt_files(&files);
        let specs = self
            .workspace_agent()
            .agents()
            .specs(&self.owner, &files)
            .await
            .map_err(|error| error.to_string())?;
        let definition = &context.agent.workspace().definition;
        let candidates = DelegationCandidates {
            specs: &specs,
            allowed: definition
                .active_spec()
                .and_then(|active| active.subagents.as_ref()),
            builtin_agent_refusal,
        };
        candidates.choose(name).cloned()
    }

    fn default_wait(&self, spec: &AgentSpec) -> TaskWait {
        match spec.background {
            true => TaskWait::Background,
            false => TaskWait::UpTo(Duration::from_secs(
                self.workspace_agent().policy().subagent_timeout_seconds,
            )),
        }
    }

    /// Records a new task.
    async fn record_task(
        &self,
        context: &DelegationContext,
        spec: &AgentSpec,
        session: SessionId,
        (task, label, description): (String, Option<String>, String),
    ) -> Result<TaskRecord, String> {
        let at = jiff::Timestamp::now();
        let record = TaskRecord {
            task_id: task,
            sub_agent_id: spec.name.clone(),
            parent_agent_id: context.agent.agents().own_name(),
            parent_session_id: self.session.clone(),
            sub_session_id: session,
            label,
            description,
            status: TaskStatus::Running,
            result: None,
            error_message: None,
            awaiting_confirm: false,
            untrusted: false,
            taint: Default::default(),
            run: context.run.clone(),
            spent: Default::default(),
            created_at: at,
            last_updated_at: at,
            others: Default::default(),
        };
        self.records
            .put(record.clone())
            .await
            .map_err(|error| error.to_string())?;
        Ok(record)
    }
}

/// The agents of a workspace, and which of them the acting agent may delegate to.
struct DelegationCandidates<'a> {
    specs: &'a BTreeMap<String, Arc<AgentSpec>>,
    /// The names in the definition of the acting agent; `None` allows all.
    allowed: Option<&'a Vec<String>>,
    builtin_agent_refusal: Option<&'a str>,
}

impl<'a> DelegationCandidates<'a> {
    /// Returns the agent with this name. Without a name, the only agent that may be used is
    /// returned, or else the built-in one.
    fn choose(&self, name: Option<&str>) -> Result<&'a Arc<AgentSpec>, String> {
        let Some(name) = name else {
            return self
                .default_agent()
                .ok_or_else(|| self.error("say which agent is to do it"));
        };
        match self.specs.get(name) {
            Some(spec) if self.is_allowed(spec) => Ok(spec),
            Some(spec) => Err(self.error(&match self.refusal(spec) {
                Some(refusal) => refusal.to_owned(),
                None if !spec.mode.is_subagent() => {
                    format!("{name} is a main agent: work cannot be handed to it")
                }
                None => format!("{name} may not be given work by this agent"),
            })),
            None => Err(self.error(&format!("there is no agent {name:?}"))),
        }
    }

    fn default_agent(&self) -> Option<&'a Arc<AgentSpec>> {
        let usable: Vec<&Arc<AgentSpec>> = self.usable().collect();
        match usable.as_slice() {
            [only] => Some(only),
            _ => usable.into_iter().find(|spec| spec.is_general_purpose()),
        }
    }

    fn usable(&self) -> impl Iterator<Item = &'a Arc<AgentSpec>> {
        self.specs.values().filter(|spec| self.is_allowed(spec))
    }

    fn is_allowed(&self, spec: &AgentSpec) -> bool {
        spec.mode.is_subagent()
            && self.allowed.is_none_or(|names| names.contains(&spec.name))
            && self.refusal(spec).is_none()
    }

    /// Returns why the agent may not be used, if it is the built-in one.
    fn refusal(&self, spec: &AgentSpec) -> Option<&'a str> {
        self.builtin_agent_refusal
            .filter(|_| spec.is_general_purpose())
    }

    /// Returns an error message that ends with the agents that may be used.
    fn error(&self, message: &str) -> String {
        let names: Vec<&str> = self.usable().map(|spec| spec.name.as_str()).collect();
        match names.is_empty() {
            true => format!("{message}; there is nobody to hand work to"),
            false => format!("{message}; there are: {}", names.join(", ")),
        }
    }
}

/// Checks a label. It is shown to people and models within other text, so it must not contain
/// markup or control characters.
fn check_label(label: &str) -> Result<(), String> {
    const MAX_CHARS: usize = 80;
    let is_forbidden = |c: char| c.is_control() || "<>\"[]".contains(c);
    let is_name = !label.trim().is_empty()
        && label.chars().count() <= MAX_CHARS
        && !label.contains(is_forbidden);
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "a label is one line of at most {MAX_CHARS} characters, without < > [ ] and quotes"
        )),
    }
}

/// Returns a unique id.
fn fresh_task_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
