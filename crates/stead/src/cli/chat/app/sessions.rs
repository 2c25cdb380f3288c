//! The current session: switching, listing, and returning to an earlier point.

use super::super::state::SessionInfo;
use super::super::transcript::Tone;
use super::{App, SESSIONS_SHOWN};
use crate::cli::args::GlobalArgs;
use crate::cli::error::CliError;
use crate::cli::open_agent::open_agent;
use crate::cli::render::tokens_line;
use crate::cli::sessions::{SessionFilter, newest_sessions};
use std::sync::Arc;
use stead::agent::{Agent, AgentError, ArchiveTag, Pinned, Session};
use stead::core::counted;
use stead::core::{PlanStage, SessionId};
use stead::store::{PageRequest, StoreError};
use stead::workspace::ModelUse;

impl App<'_> {
    /// Switches to a session and shows it.
    pub(super) async fn switch_session(&mut self, session: Session) {
        if *session.id() != self.id {
            // Messages queued for the other session, and its queue mode, do not apply to this one.
            self.chat.restore_queued_input();
            self.chat
                .inbox
                .set_mode(self.agent.workspace().config().queue.mode);
        }
        self.id = session.id().clone();
        self.session_changes = self.args.turn.session_changes();
        self.chat.info = session_info(&self.agent, &session);
        self.apply_flags();
        self.chat.show_session(session.state());
        if session.state().is_resumable() {
            self.chat.note(
                Tone::Warning,
                "the last run did not end; /resume resumes it",
            );
        }
        self.attach_session(session).await;
    }

    /// Applies the flags from the next run on.
    pub(super) fn apply_flags(&mut self) {
        let turn = &self.args.turn;
        let info = &mut self.chat.info;
        info.mode = turn.mode.unwrap_or(info.mode);
        if let Some(agent) = &turn.agent {
            info.agent.clone_from(agent);
        }
    }

    /// Stores the session while no run owns it. Subagents of another session are stopped.
    pub(super) async fn attach_session(&mut self, session: Session) {
        if !Arc::ptr_eq(&self.subagents, session.subagents()) {
            if let Some(words) = self.stop_tasks().await {
                self.chat.note(Tone::Warning, words);
            }
            self.subagents = session.subagents().clone();
            self.task_ends = self.subagents.watch_finished();
        }
        // An unreadable list is reported when it is asked for.
        self.chat.agents = self
            .agent
            .agents()
            .switchable(self.agent.owner())
            .await
            .unwrap_or_default();
        self.session = Some(session);
    }

    /// Stops background tasks, and returns a message about them if there were any.
    pub(super) async fn stop_tasks(&mut self) -> Option<String> {
        let working = self.subagents.running_count();
        self.subagents.stop().await;
        let words = |what: &str| {
            format!("{what} in the background and stopped; `agent_send` resumes the work")
        };
        match working {
            0 => None,
            1 => Some(words("1 task was running")),
            many => Some(words(&format!("{many} tasks were running"))),
        }
    }

    /// Uses another model from now on.
    pub(super) async fn change_model(&mut self, name: String) -> Result<(), CliError> {
        let common = GlobalArgs {
            model: Some(name),
            ..self.common.clone()
        };
        let agent = open_agent(&common, self.env, ModelUse::Required).await?;
        let session = load_session(&agent, &self.id).await?;
        self.agent.sessions().flush().await;
        (self.common, self.agent) = (common, agent);
        self.start_memory_worker();
        self.chat.info = session_info(&self.agent, &session);
        self.apply_flags();
        self.attach_session(session).await;
        self.chat.note(
            Tone::Info,
            format!("the model is {} from now on", self.chat.info.model),
        );
        Ok(())
    }

    /// Archives the conversation, where the layout keeps conversations, and shows its path.
    pub(super) async fn archive(&mut self) -> Result<String, CliError> {
        if self.chat.info.turns == 0 {
            return Ok(String::new());
        }
        let archived = self
            .agent
            .archive()
            .save(self.agent.owner(), &self.id, ArchiveTag::Manual)
            .await?;
        Ok(archived.map_or(String::new(), |path| {
            format!("; the last one is archived in {path}")
        }))
    }

    pub(super) async fn list_sessions(&mut self) -> Result<(), CliError> {
        let page = PageRequest::first(SESSIONS_SHOWN);
        let sessions = self.agent.sessions();
        let listed = newest_sessions(&*sessions, SessionFilter::WithoutSubagents, page).await?;
        let mut rows: Vec<String> = Vec::new();
        for summary in &listed.page.sessions {
            let here = if summary.id == self.id { "*" } else { " " };
            let numbers = tokens_line(&summary.usage, summary.cost);
            rows.push(format!(
                "{here} {}  {}\n    {} · {numbers}",
                summary.id,
                summary.title,
                counted(summary.runs, "run")
            ));
        }
        if rows.is_empty() {
            rows.push("no sessions yet".to_owned());
        }
        if listed.page.next.is_some() {
            rows.push("and more; `stead sessions list --all` shows all".to_owned());
        }
        self.chat.note(Tone::Info, rows.join("\n"));
        Ok(())
    }

    pub(super) fn list_turns(&mut self) {
        let points = self.session.iter().flat_map(Session::rewind_points);
        let rows: Vec<String> = points
            .map(|point| format!("{:>3}  {}", point.turn, first_line(&point.text)))
            .collect();
        let text = match rows.is_empty() {
            true => "there are no turns yet".to_owned(),
            false => format!(
                "{}\n/rewind N returns to the point before turn N; nothing is erased",
                rows.join("\n")
            ),
        };
        self.chat.note(Tone::Info, text);
    }

    pub(super) async fn pin(&mut self, turn: usize, pinned: Pinned) -> Result<(), CliError> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        session.pin(turn, pinned, self.args.turn.wait()).await?;
        let words = match pinned {
            Pinned::Yes => "is pinned: the model always sees it word for word",
            Pinned::No => "is no longer pinned",
        };
        self.chat
            .note(Tone::Info, format!("the input of turn {turn} {words}"));
        Ok(())
    }

    pub(super) async fn rewind(&mut self, turn: usize) -> Result<(), CliError> {
        let Some(mut session) = self.session.take() else {
            return Ok(());
        };
        let rewound = session.rewind(turn, self.args.turn.wait()).await;
        match rewound {
            Ok(point) => {
                self.switch_session(session).await;
                self.chat.note(
                    Tone::Info,
                    format!("continues before turn {turn}: {}", first_line(&point.text)),
                );
                Ok(())
            }
            Err(error) => {
                self.session = Some(session);
                Err(error.into())
            }
        }
    }
}

/// Loads a session from its journal, or creates a new one if there is none.
pub(super) async fn load_session(
    agent: &Arc<Agent>,
    id: &SessionId,
) -> Result<Session, AgentError> {
    let mut session = agent.session(id.clone());
    match session.load().await {
        Ok(()) | Err(AgentError::Store(StoreError::NotFound(_))) => Ok(session),
        Err(error) => Err(error),
    }
}

/// Returns how full the context is, once there is a message.
fn context_of(session: &Session) -> Option<(u64, Option<u64>)> {
    let used = session.state().used_tokens(0);
    (used > 0).then(|| (used, session.window()))
}

pub(super) fn session_info(agent: &Arc<Agent>, session: &Session) -> SessionInfo {
    let state = session.state();
    SessionInfo {
        session: session.id().to_string(),
        agent: session.active_agent_name(),
        model: session.next_model(),
        journal: agent.sessions().locate(session.id()),
        turns: session.rewind_points().len(),
        usage: state.usage,
        cost: state.cost,
        context: context_of(session),
        mode: session.permission_mode(),
        planning: state
            .plan
            .as_ref()
            .and_then(PlanStage::draft_file)
            .map(str::to_owned),
        todos: state.todos.clone(),
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or("").chars().take(60).collect()
}
