//! How a session goes on, changed by a person: plan mode, the permission mode, the agent that acts.
//! The model is told of it with the next input; whether it listens does not matter to the gate.

use crate::active_run::ActiveRun;
use crate::admission::{CallGate, GateContext};
use crate::session::IfMissing;
use crate::{AgentError, Session};
use stead_core::{
    Block, Entry, EventKind, JournalLine, PermissionMode, PlanModeChange, PlanStage, SessionChange,
    SetEntry, TodoStatus, VerbatimSection,
};
use stead_gate::SessionPermissions;
use stead_store::{JournalWriter, LockWait};
use stead_tools::{SessionView, checklist};
use stead_vfs::VPath;

impl Session {
    /// Changes how the session goes on, between two runs; the session is begun if there is none
    /// yet. `by` says who wanted it, for the record. False if it is so already.
    pub async fn set(
        &mut self,
        change: SessionChange,
        by: impl Into<String>,
        wait: LockWait,
    ) -> Result<bool, AgentError> {
        let set = vec![SetEntry {
            change,
            by: by.into(),
        }];
        self.check_chosen_agents(&set).await?;
        let (mut writer, _) = self.open_for_writing(wait, IfMissing::Create).await?;
        let written = self.record_settings(&mut *writer, set).await;
        let taken = self.switch_to_recorded_agent(None).await;
        self.sessions
            .update_derived(&self.state, writer.position())
            .await;
        writer.close().await;
        let written = written?;
        taken?;
        Ok(!written.is_empty())
    }

    /// Puts on record what changes anything.
    pub(crate) async fn record_settings(
        &mut self,
        writer: &mut dyn JournalWriter,
        set: Vec<SetEntry>,
    ) -> Result<Vec<JournalLine>, AgentError> {
        let entries: Vec<Entry> = self
            .effective_changes(set)
            .into_iter()
            .map(Entry::Set)
            .collect();
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let lines = writer.append(entries).await?;
        self.apply(&lines)?;
        self.position = Some(writer.position());
        Ok(lines)
    }

    /// The permission mode that holds.
    pub fn permission_mode(&self) -> PermissionMode {
        self.state
            .mode
            .unwrap_or(self.agent.workspace().config().permission_mode)
    }

    /// What binds its calls beside the rules of its agent.
    pub(crate) fn permissions(&self) -> SessionPermissions {
        let mode = self.permission_mode();
        let mut ceiling = self.state.ceiling().cloned().unwrap_or_default();
        if let Some(PlanStage::Making { file }) = &self.state.plan {
            ceiling.planning = Some(file.clone());
        }
        ceiling.tainted |= self.state.tainted.is_some();
        if let Some(now) = self
            .parent_subagents
            .as_ref()
            .and_then(|crew| crew.current_permissions())
        {
            ceiling.tighten(&now.ceiling_for_subagents());
        }
        SessionPermissions {
            mode,
            ceiling,
            grants: self.grants.clone(),
            denied_tools: CallGate::new(&self.agent).denied_tools(),
        }
    }

    /// The conversation, as far as the gate must know it.
    pub(crate) fn gate_context(&self) -> GateContext<'_> {
        let owner = &self.owner;
        let terms = self.permissions();
        // What came from above came with its first entry.
        let tainted = self.state.tainted.or(terms.ceiling.tainted.then_some(1));
        GateContext {
            owner,
            permissions: terms,
            tainted_since: tainted,
            session: Some(self),
        }
    }

    /// The change by which plan mode begins.
    pub fn plan_mode_change(&self) -> SessionChange {
        let file = self.agent.workspace().config().plan.file().to_string();
        SessionChange::Plan {
            plan: Some(PlanStage::Making { file }),
        }
    }

    /// Those of the settings that change anything.
    fn effective_changes(&self, set: Vec<SetEntry>) -> Vec<SetEntry> {
        let making =
            |plan: Option<&PlanStage>| plan.and_then(PlanStage::draft_file).map(str::to_owned);
        let is_new = |set: &SetEntry| match &set.change {
            SessionChange::Mode { to } => *to != self.permission_mode(),
            SessionChange::Plan { plan } => {
                making(plan.as_ref()) != making(self.state.plan.as_ref())
            }
            SessionChange::Todos { todos } => *todos != self.state.todos,
            SessionChange::Agent { to } => *to != self.agent_from_journal_or_default(),
            SessionChange::Ceiling(ceiling) => Some(ceiling) != self.state.ceiling(),
        };
        set.into_iter().filter(is_new).collect()
    }

    /// An input, with what the model must be told beside it.
    pub(crate) fn with_plan_reminder(&self, mut content: Vec<Block>) -> Vec<Block> {
        content.extend(
            self.state
                .unannounced_plan_change(&[])
                .map(|news| Block::text(plan_reminder(&news))),
        );
        content
    }

    /// Sees to it that the files which tools hold refuse what plan mode forbids, as the session
    /// stands now.
    pub(crate) fn update_freeze(&self) {
        let file = self.permissions().ceiling.planning;
        // A file that is no path can be written by nobody.
        self.freeze
            .set(file.map(|file| VPath::parse(&file).unwrap_or(VPath::root())));
    }

    /// How it stands, for its tools.
    pub(crate) fn session_view(&self) -> SessionView {
        SessionView {
            todos: self.state.todos.clone(),
            plan: self.state.plan.clone(),
        }
    }

    /// What stays word for word when a summary takes the place of the conversation.
    pub(crate) fn kept_verbatim(&self) -> Vec<VerbatimSection> {
        let plan = self.state.plan.as_ref().map(|stage| match stage {
            PlanStage::Making { file } => VerbatimSection {
                tag: "plan_mode".to_owned(),
                text: plan_mode_text(file),
            },
            PlanStage::Agreed { text, .. } => VerbatimSection {
                tag: "active_plan".to_owned(),
                text: text.clone(),
            },
        });
        let open = self.state.todos.iter().filter(|todo| match todo.status {
            TodoStatus::Pending | TodoStatus::InProgress => true,
            TodoStatus::Completed => false,
        });
        let open = checklist(open);
        let todos = (!open.is_empty()).then(|| VerbatimSection {
            tag: "open_todos".to_owned(),
            text: open,
        });
        plan.into_iter().chain(todos).collect()
    }
}

impl ActiveRun<'_> {
    /// Tells listeners what these lines changed of how the session goes on.
    pub(crate) fn notify_setting_changes(&mut self, lines: &[JournalLine]) {
        for line in lines {
            let change = match &line.entry {
                Entry::Result(result) => result.change.as_ref(),
                Entry::Set(set) => Some(&set.change),
                Entry::Session(_)
                | Entry::User(_)
                | Entry::Model(_)
                | Entry::Call(_)
                | Entry::Ask(_)
                | Entry::Decision(_)
                | Entry::Notice(_)
                | Entry::Steer(_)
                | Entry::Hook(_)
                | Entry::Pin(_)
                | Entry::Compaction(_)
                | Entry::Rewind(_)
                | Entry::End(_) => None,
            };
            if let Some(event) = change.and_then(EventKind::from_change) {
                self.emit(event);
            }
        }
    }
}

fn plan_mode_text(file: &str) -> String {
    format!(
        "Plan mode is on: until the person agrees to a plan, nothing but reading is allowed. Write the plan to {file} \
         with plan_write, then call plan_exit."
    )
}

/// What the model is told of plan mode.
fn plan_reminder(news: &PlanModeChange) -> String {
    let text = match news {
        PlanModeChange::Entered { file } => plan_mode_text(file),
        PlanModeChange::Exited => {
            "The person ended plan mode: changes are allowed again.".to_owned()
        }
    };
    format!("<system_reminder>\n{text}\n</system_reminder>")
}
