//! Handing a task over.

use super::bounds::child_files;
use super::run_task::{ChildSession, TaskAssignment};
use super::{DelegationBounds, DelegationContext, Subagents, TaskIdentity, TaskRecord, TaskStatus};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Block, SessionId};
use stead_tools::builtin::{DELEGATION_CANCEL, DELEGATION_WAIT};
use stead_workspace::{AgentRole, AgentSpec};

/// A task to be handed over.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskRequest {
    /// To which agent; none = the only one that may be given work, or else the built-in one.
    pub agent: Option<String>,
    /// What it is about, in a few words.
    pub description: String,
    /// The task.
    pub prompt: String,
    /// What to call it.
    pub label: Option<String>,
    /// Whether and how long it is waited for; none = as the agent's definition says.
    pub wait: Option<TaskWait>,
    /// Why the built-in agent may not be given it, if so.
    pub builtin_agent_refusal: Option<String>,
}

/// Whether a task is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskWait {
    /// So long; then it goes on in the background.
    UpTo(Duration),
    /// Not at all.
    Background,
}

impl Subagents {
    /// Sets an agent to work on a task. Gives the record as it was then, and whether to wait; an
    /// error says what to do instead.
    pub async fn start_task(
        self: &Arc<Self>,
        order: TaskRequest,
    ) -> Result<(TaskRecord, TaskWait), String> {
        let now = self
            .run_context()
            .ok_or("tasks can be handed over in a session only")?;
        let deepest = self.workspace_agent.policy().max_subagent_depth;
        if now.depth >= deepest {
            return Err(format!(
                "a task may go through {deepest} hands at most (policy.max_subagent_depth): do this one yourself"
            ));
        }
        let spec = self
            .find_agent(
                &now,
                order.agent.as_deref(),
                order.builtin_agent_refusal.as_deref(),
            )
            .await?;
        let files = child_files(&spec)?;
        let role = self
            .workspace_agent
            .agents()
            .agent(&spec, AgentRole::Child)
            .map_err(|error| format!("{}: {error}", spec.name))?;
        self.records
            .load()
            .await
            .map_err(|error| error.to_string())?;
        if let Some(label) = &order.label {
            check_label(label)?;
            let taken =
                |task: &TaskRecord| task.label.as_ref() == Some(label) && !task.status.is_final();
            if self.records.all().iter().any(taken) {
                return Err(format!(
                    "the label {label:?} is taken by a task that is at work; choose another"
                ));
            }
        }
        let task = format!("task_{}", fresh_task_id());
        let session = SessionId::new(format!("sub-{}", fresh_task_id()))
            .map_err(|error| error.to_string())?;
        let named = TaskIdentity {
            task: task.clone(),
            agent: spec.name.clone(),
            label: order.label.clone(),
        };
        let spawned = self.delegation_bounds(&now).into_spawned(named, files);
        let wait = order.wait.unwrap_or_else(|| self.default_wait(&spec));
        let record = self
            .record_task(&now, &spec, session, (task, order.label, order.description))
            .await?;
        let input = vec![Block::text(order.prompt)];
        let cancel = now.cancel.child_token();
        self.spawn_task(
            record.clone(),
            TaskAssignment {
                agent: role,
                session: ChildSession::New(spawned),
                input,
                context: now,
                cancel,
                schema: spec.result_schema.clone(),
            },
        );
        Ok((record, wait))
    }

    /// Goes on with the session of an earlier task.
    pub async fn continue_task(
        self: &Arc<Self>,
        to: &str,
        message: String,
        wait: Option<TaskWait>,
        no_helper: Option<&str>,
    ) -> Result<(TaskRecord, TaskWait), String> {
        let now = self
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
                "{} waits for a person's decision (`stead approvals list`), and goes on once that is given",
                before.task_id
            ));
        }
        let spec = self
            .find_agent(&now, Some(&before.sub_agent_id), no_helper)
            .await?;
        let role = self
            .workspace_agent
            .agents()
            .agent(&spec, AgentRole::Child)
            .map_err(|error| format!("{}: {error}", spec.name))?;
        let wait = wait.unwrap_or_else(|| self.default_wait(&spec));
        let task = format!("task_{}", fresh_task_id());
        let label = before.label.clone();
        let what = (task, label, before.description.clone());
        let record = self
            .record_task(&now, &spec, before.sub_session_id.clone(), what)
            .await?;
        let input = vec![Block::text(message)];
        let cancel = now.cancel.child_token();
        // What binds its parent may have changed since.
        let begins = ChildSession::Existing(self.delegation_bounds(&now).into_ceiling_setting());
        self.spawn_task(
            record.clone(),
            TaskAssignment {
                agent: role,
                session: begins,
                input,
                context: now,
                cancel,
                schema: spec.result_schema.clone(),
            },
        );
        Ok((record, wait))
    }

    /// What binds those it hands work to now.
    fn delegation_bounds(&self, now: &DelegationContext) -> DelegationBounds {
        DelegationBounds::new(
            self.session.clone(),
            &now.permissions,
            now.depth,
            now.tree.clone(),
        )
    }

    /// The agent of this name, if the one that acts may hand it work; without a name, whom it would
    /// be.
    async fn find_agent(
        &self,
        now: &DelegationContext,
        name: Option<&str>,
        no_helper: Option<&str>,
    ) -> Result<Arc<AgentSpec>, String> {
        let files = self
            .workspace_agent
            .parts
            .place
            .files(&self.owner, &now.tree, None);
        let files = self.workspace_agent.workspace().prompt_files(&files);
        let specs = self
            .workspace_agent
            .agents()
            .specs(&self.owner, &files)
            .await
            .map_err(|error| error.to_string())?;
        let definition = &now.agent.workspace().definition;
        let allowed = definition
            .active_spec()
            .and_then(|active| active.subagents.as_ref());
        let refused = |spec: &AgentSpec| no_helper.filter(|_| spec.is_general_purpose());
        let may = |spec: &AgentSpec| {
            spec.mode.is_subagent()
                && allowed.is_none_or(|names| names.contains(&spec.name))
                && refused(spec).is_none()
        };
        let able: Vec<&Arc<AgentSpec>> = specs.values().filter(|spec| may(spec)).collect();
        let helper = able.iter().find(|spec| spec.is_general_purpose());
        let name = match (name, able.as_slice(), helper) {
            (Some(name), _, _) => name,
            (None, [only], _) | (None, _, Some(only)) => only.name.as_str(),
            (None, _, None) => {
                return Err(format!(
                    "say which agent is to do it{}",
                    list_agents(specs.values(), may)
                ));
            }
        };
        match specs.get(name) {
            Some(spec) if may(spec) => Ok(spec.clone()),
            Some(spec) if refused(spec).is_some() => Err(format!(
                "{}{}",
                refused(spec).unwrap_or_default(),
                list_agents(specs.values(), may)
            )),
            Some(spec) if !spec.mode.is_subagent() => Err(format!(
                "{name} is a main agent: work cannot be handed to it{}",
                list_agents(specs.values(), may)
            )),
            Some(_) => Err(format!(
                "{name} may not be given work by this agent{}",
                list_agents(specs.values(), may)
            )),
            None => Err(format!(
                "there is no agent {name:?}{}",
                list_agents(specs.values(), may)
            )),
        }
    }

    fn default_wait(&self, spec: &AgentSpec) -> TaskWait {
        match spec.background {
            true => TaskWait::Background,
            false => TaskWait::UpTo(Duration::from_secs(
                self.workspace_agent.policy().subagent_timeout_seconds,
            )),
        }
    }

    /// Puts a task on record.
    async fn record_task(
        &self,
        now: &DelegationContext,
        spec: &AgentSpec,
        session: SessionId,
        (task, label, description): (String, Option<String>, String),
    ) -> Result<TaskRecord, String> {
        let at = jiff::Timestamp::now();
        let record = TaskRecord {
            task_id: task,
            sub_agent_id: spec.name.clone(),
            parent_agent_id: now.agent.agents().own_name(),
            parent_session_id: self.session.clone(),
            sub_session_id: session,
            label,
            description,
            status: TaskStatus::Running,
            result: None,
            error_message: None,
            awaiting_confirm: false,
            untrusted: false,
            run: now.run.clone(),
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

fn list_agents<'a>(
    specs: impl Iterator<Item = &'a Arc<AgentSpec>>,
    may: impl Fn(&AgentSpec) -> bool,
) -> String {
    let names: Vec<&str> = specs
        .filter(|spec| may(spec))
        .map(|spec| spec.name.as_str())
        .collect();
    match names.is_empty() {
        true => "; there is nobody to hand work to".to_owned(),
        false => format!("; there are: {}", names.join(", ")),
    }
}

/// A label is shown to people and models among other words, so it can be nothing but a name.
fn check_label(label: &str) -> Result<(), String> {
    const MAX_CHARS: usize = 80;
    let strange = |c: char| c.is_control() || "<>\"[]".contains(c);
    let is_name =
        !label.trim().is_empty() && label.chars().count() <= MAX_CHARS && !label.contains(strange);
    match is_name {
        true => Ok(()),
        false => Err(format!(
            "a label is one line of at most {MAX_CHARS} characters, without < > [ ] and quotes"
        )),
    }
}

/// An id that no other task has.
fn fresh_task_id() -> String {
    uuid::Uuid::now_v7().simple().to_string()
}
