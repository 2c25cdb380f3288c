//! Settings of a session that a person changes: plan mode, permission mode, the agent that acts,
//! trust. The model is told of them with the next input; the gate applies them at once.
//!
//! Effects: the clock, the environment, workspace files (reads), the journal (writes).

use super::{IfMissing, Session, SessionWriter};
use crate::AgentError;
use stead_core::{Block, PlanModeChange, PlanStage, SessionChange, SetEntry, TaintOrigins};
use stead_store::LockWait;

impl Session {
    /// Changes a setting between two runs. The session is created if it does not exist. `by` is the
    /// person or program that asked for it, for the record. Returns false if nothing changed.
    pub async fn set(
        &mut self,
        change: SessionChange,
        by: impl Into<String>,
        wait: LockWait,
    ) -> Result<bool, AgentError> {
        let by = by.into();
        self.set_all(vec![SetEntry { change, by }], wait).await
    }

    /// Changes several settings between two runs, all of them or none. Returns false if nothing
    /// changed.
    pub async fn set_all(
        &mut self,
        settings: Vec<SetEntry>,
        wait: LockWait,
    ) -> Result<bool, AgentError> {
        self.check_settings(&settings).await?;
        let mut writer = SessionWriter::open(self, wait, IfMissing::Create).await?;
        let recorded = writer.record_settings(settings).await;
        let switched = writer.switch_to_recorded_agent().await;
        writer.close().await;
        let recorded = recorded?;
        switched?;
        Ok(!recorded.is_empty())
    }

    /// Vouches for everything in the session so far: it is no longer tainted. Untrusted content that
    /// comes later taints it again. `by` is the person who says so. Returns the origins of what
    /// they vouched for, or nothing if the session was not tainted.
    pub async fn trust(
        &mut self,
        by: impl Into<String>,
        wait: LockWait,
    ) -> Result<Option<TaintOrigins>, AgentError> {
        let by = by.into();
        let change = SessionChange::Trust;
        let mut writer = SessionWriter::open(self, wait, IfMissing::Fail).await?;
        let origins = writer.state().taint_origins();
        let recorded = writer.record_settings(vec![SetEntry { change, by }]).await;
        writer.close().await;
        Ok((!recorded?.is_empty()).then_some(origins))
    }

    /// Gives the session a title, by which it is listed and found. `by` is the person who says so.
    pub async fn set_title(
        &mut self,
        title: String,
        by: impl Into<String>,
        wait: LockWait,
    ) -> Result<(), AgentError> {
        let change = SessionChange::Title { to: title };
        let by = by.into();
        let mut writer = SessionWriter::open(self, wait, IfMissing::Fail).await?;
        let recorded = writer.record_settings(vec![SetEntry { change, by }]).await;
        writer.close().await;
        recorded.map(drop)
    }

    /// Refuses settings that name an agent which does not exist or cannot act by itself.
    pub(crate) async fn check_settings(&self, settings: &[SetEntry]) -> Result<(), AgentError> {
        self.agents
            .check_choices(settings, &self.owner, &self.files(None))
            .await
    }

    /// The change that starts plan mode.
    pub fn plan_mode_change(&self) -> SessionChange {
        let file = self.agent().workspace().config().plan.file().to_string();
        SessionChange::Plan {
            plan: Some(PlanStage::Making { file }),
        }
    }
}

/// Returns those of `settings` that change anything in `session`.
pub(super) fn effective_changes(session: &Session, settings: Vec<SetEntry>) -> Vec<SetEntry> {
    let state = session.state();
    let draft = |plan: Option<&PlanStage>| plan.and_then(PlanStage::draft_file).map(str::to_owned);
    let is_new = |setting: &SetEntry| match &setting.change {
        SessionChange::Mode { to, .. } => *to != session.permission_mode(),
        SessionChange::Plan { plan } => draft(plan.as_ref()) != draft(state.plan.as_ref()),
        SessionChange::Todos { todos } => *todos != state.todos,
        SessionChange::Agent { to } => *to != session.agents.name_or_default(state),
        SessionChange::Ceiling(ceiling) => Some(ceiling) != state.ceiling(),
        SessionChange::Model { to } => Some(to) != state.session_model.as_ref(),
        SessionChange::Trust => state.tainted.is_some(),
        SessionChange::Title { to } => *to != state.title,
    };
    settings.into_iter().filter(is_new).collect()
}

/// Adds reminders to an input of `session`: a change of plan mode that the model was not told of, and
/// the reminder that the acting agent's definition asks for.
pub(crate) fn with_reminders(session: &Session, mut content: Vec<Block>) -> Vec<Block> {
    let state = session.state();
    let plan = state.unannounced_plan_change(&[]);
    content.extend(plan.map(|change| Block::text(plan_reminder(&change))));
    content.extend(session.agents.due_reminder(state).map(Block::text));
    content
}

/// Returns the instructions of plan mode.
pub(crate) fn plan_mode_text(file: &str) -> String {
    format!(
        "Plan mode is on: until the person agrees to a plan, nothing but reading is allowed. Write the plan to {file} \
         with plan_write, then call plan_exit."
    )
}

/// Returns what the model is told about a change of plan mode.
fn plan_reminder(change: &PlanModeChange) -> String {
    let text = match change {
        PlanModeChange::Entered { file } => plan_mode_text(file),
        PlanModeChange::Exited => {
            "The person ended plan mode: changes are allowed again.".to_owned()
        }
    };
    format!("<system_reminder>\n{text}\n</system_reminder>")
}
