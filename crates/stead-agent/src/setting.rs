//! How a session goes on, changed by a person: plan mode, the permission mode, the agent that acts.
//! The model is told of it with the next input; whether it listens does not matter to the gate.

use crate::admission::Conversation;
use crate::gate::Terms;
use crate::live::Live;
use crate::session::Missing;
use crate::{AgentError, Session};
use stead_core::{
    Block, Change, Entry, EventKind, Kept, Line, PermissionMode, PlanNews, PlanStage, Set,
    TodoStatus,
};
use stead_store::{JournalWriter, Wait};
use stead_tools::{Standing, checklist};
use stead_vfs::VPath;

impl Session {
    /// Changes how the session goes on, between two runs; the session is begun if there is none
    /// yet. `by` says who wanted it, for the record. False if it is so already.
    pub async fn set(
        &mut self,
        change: Change,
        by: impl Into<String>,
        wait: Wait,
    ) -> Result<bool, AgentError> {
        let set = vec![Set {
            change,
            by: by.into(),
        }];
        self.check_agent(&set).await?;
        let (mut writer, _) = self.take(wait, Missing::Create).await?;
        let written = self.put(&mut *writer, set).await;
        let taken = self.take_part(None).await;
        self.sessions.derive(&self.state, writer.position()).await;
        writer.close().await;
        let written = written?;
        taken?;
        Ok(!written.is_empty())
    }

    /// Puts on record what changes anything.
    pub(crate) async fn put(
        &mut self,
        writer: &mut dyn JournalWriter,
        set: Vec<Set>,
    ) -> Result<Vec<Line>, AgentError> {
        let entries: Vec<Entry> = self.new_settings(set).into_iter().map(Entry::Set).collect();
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
    pub(crate) fn terms(&self) -> Terms {
        let mode = self.permission_mode();
        let mut ceiling = self.state.ceiling().cloned().unwrap_or_default();
        if let Some(PlanStage::Making { file }) = &self.state.plan {
            ceiling.planning = Some(file.clone());
        }
        ceiling.tainted |= self.state.tainted.is_some();
        if let Some(now) = self.above.as_ref().and_then(|crew| crew.terms()) {
            ceiling.lower_to(&now.below());
        }
        Terms {
            mode,
            ceiling,
            granted: self.granted.clone(),
            denied: self.agent.denied(),
        }
    }

    /// The conversation, as far as the gate must know it.
    pub(crate) fn conversation(&self) -> Conversation<'_> {
        let owner = &self.owner;
        let terms = self.terms();
        // What came from above came with its first entry.
        let tainted = self.state.tainted.or(terms.ceiling.tainted.then_some(1));
        Conversation {
            owner,
            terms,
            tainted,
            session: Some(self),
        }
    }

    /// The change by which plan mode begins.
    pub fn planning(&self) -> Change {
        let file = self.agent.workspace().config().plan.file().to_string();
        Change::Plan {
            plan: Some(PlanStage::Making { file }),
        }
    }

    /// Those of the settings that change anything.
    fn new_settings(&self, set: Vec<Set>) -> Vec<Set> {
        let making = |plan: Option<&PlanStage>| plan.and_then(PlanStage::making).map(str::to_owned);
        let is_new = |set: &Set| match &set.change {
            Change::Mode { to } => *to != self.permission_mode(),
            Change::Plan { plan } => making(plan.as_ref()) != making(self.state.plan.as_ref()),
            Change::Todos { todos } => *todos != self.state.todos,
            Change::Agent { to } => *to != self.recorded_agent(),
            Change::Ceiling(ceiling) => Some(ceiling) != self.state.ceiling(),
        };
        set.into_iter().filter(is_new).collect()
    }

    /// An input, with what the model must be told beside it.
    pub(crate) fn reminded(&self, mut content: Vec<Block>) -> Vec<Block> {
        content.extend(
            self.state
                .plan_news(&[])
                .map(|news| Block::text(reminder(&news))),
        );
        content
    }

    /// Sees to it that the files which tools hold refuse what plan mode forbids, as the session
    /// stands now.
    pub(crate) fn refreeze(&self) {
        let file = self.terms().ceiling.planning;
        // A file that is no path can be written by nobody.
        self.freeze
            .set(file.map(|file| VPath::parse(&file).unwrap_or(VPath::root())));
    }

    /// How it stands, for its tools.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            todos: self.state.todos.clone(),
            plan: self.state.plan.clone(),
        }
    }

    /// What stays word for word when a summary takes the place of the conversation.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        let plan = self.state.plan.as_ref().map(|stage| match stage {
            PlanStage::Making { file } => Kept {
                tag: "plan_mode".to_owned(),
                text: plan_mode(file),
            },
            PlanStage::Agreed { text, .. } => Kept {
                tag: "active_plan".to_owned(),
                text: text.clone(),
            },
        });
        let open = self.state.todos.iter().filter(|todo| match todo.status {
            TodoStatus::Pending | TodoStatus::InProgress => true,
            TodoStatus::Completed => false,
        });
        let open = checklist(open);
        let todos = (!open.is_empty()).then(|| Kept {
            tag: "open_todos".to_owned(),
            text: open,
        });
        plan.into_iter().chain(todos).collect()
    }
}

impl Live<'_> {
    /// Tells listeners what these lines changed of how the session goes on.
    pub(crate) fn tell_changes(&mut self, lines: &[Line]) {
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
            if let Some(event) = change.and_then(EventKind::of_change) {
                self.emit(event);
            }
        }
    }
}

fn plan_mode(file: &str) -> String {
    format!(
        "Plan mode is on: until the person agrees to a plan, nothing but reading is allowed. Write the plan to {file} \
         with plan_write, then call plan_exit."
    )
}

/// What the model is told of plan mode.
fn reminder(news: &PlanNews) -> String {
    let text = match news {
        PlanNews::Begun { file } => plan_mode(file),
        PlanNews::Ended => "The person ended plan mode: changes are allowed again.".to_owned(),
    };
    format!("<system_reminder>\n{text}\n</system_reminder>")
}
