//! The current session of `stead chat`: switching, listing, and returning to an earlier point.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), hooks, tools, the model, the
//! network.

use super::super::state::{PickRow, SessionInfo, SessionPicker};
use super::super::transcript::Tone;
use super::{App, ConnectedSession, SESSIONS_SHOWN, connect};
use crate::cli::args::GlobalArgs;
use crate::cli::error::CliError;
use crate::cli::open_agent::open_agent;
use crate::cli::sessions::{SessionFilter, newest_sessions};
use std::sync::Arc;
use stead::agent::{Agent, AgentError, ArchiveTag, Session};
use stead::core::counted;
use stead::core::{Command, Pinned, PlanStage, SessionId};
use stead::store::{PageRequest, SessionSummary, StoreError};
use stead::workspace::ModelUse;

impl App<'_> {
    /// Switches to a session and shows it. Subagents of the session before are stopped.
    pub(super) async fn switch_session(&mut self, view: Session) -> Result<(), CliError> {
        if view.id() != self.view.id() {
            // Messages queued for the other session do not apply to this one.
            self.chat.restore_queued_input();
            let inputs = std::mem::take(&mut self.waiting_inputs);
            let _ = self.session.send(Command::Withdraw { inputs }).await;
        }
        self.reconnect(view).await?;
        self.show_session().await;
        Ok(())
    }

    /// Follows the session that `view` shows from now on.
    async fn reconnect(&mut self, view: Session) -> Result<(), CliError> {
        if let Some(words) = self.stop_tasks().await {
            self.chat.note(Tone::Warning, words);
        }
        let ConnectedSession {
            host,
            session,
            events,
        } = connect(&self.agent, &view, &self.args).await?;
        self.chat.queue = session.queue().clone();
        self.events = events;
        self.view = view;
        self.run = None;
        // Its actor ends when nothing is left to do.
        let host = std::mem::replace(&mut self.host, host);
        let session = std::mem::replace(&mut self.session, session);
        self.closing.spawn(async move {
            let _ = host.finish(session, "switch").await;
        });
        Ok(())
    }

    /// Shows the session from its beginning.
    pub(super) async fn show_session(&mut self) {
        self.session_changes = self.args.turn.session_changes();
        self.chat.info = session_info(&self.agent, &self.view);
        self.apply_flags();
        self.chat.show_session(self.view.state());
        // An unreadable list is reported when it is asked for.
        self.chat.agents = self
            .agent
            .agents()
            .switchable(self.agent.owner())
            .await
            .unwrap_or_default();
        if !self.view.state().is_resumable() {
            return;
        }
        match self.session.holder().await {
            Some(holder) => {
                self.chat.note(
                    Tone::Info,
                    format!("{holder} runs the session; what happens there is shown here"),
                );
                self.chat.enter_running();
            }
            None => self.chat.note(
                Tone::Warning,
                "the last run did not end; /resume resumes it",
            ),
        }
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

    /// Stops background tasks, and returns a message about them if there were any.
    pub(super) async fn stop_tasks(&mut self) -> Option<String> {
        let subagents = self.session.subagents();
        let working = subagents.running_count();
        subagents.stop().await;
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
        let view = load_session(&agent, self.view.id().clone()).await?;
        self.agent.sessions().flush().await;
        self.common = common;
        self.agent = agent;
        self.start_memory_worker();
        self.reconnect(view).await?;
        self.chat.info = session_info(&self.agent, &self.view);
        self.apply_flags();
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
            .save(self.agent.owner(), self.view.id(), ArchiveTag::Manual)
            .await?;
        Ok(archived.map_or(String::new(), |path| {
            format!("; the last one is archived in {path}")
        }))
    }

    /// Opens the list of sessions.
    pub(super) async fn pick_session(&mut self) -> Result<(), CliError> {
        let page = PageRequest::first(SESSIONS_SHOWN);
        let sessions = self.agent.sessions();
        let listed = newest_sessions(&*sessions, SessionFilter::WithoutSubagents, page).await?;
        let row = |summary: &SessionSummary| PickRow {
            id: summary.id.clone(),
            title: summary.title.clone(),
            detail: match summary.cost {
                Some(cost) => format!("{} · {cost}", counted(summary.runs, "run")),
                None => counted(summary.runs, "run"),
            },
        };
        let rows: Vec<PickRow> = listed.page.sessions.iter().map(row).collect();
        if rows.is_empty() {
            self.chat.note(Tone::Info, "no sessions yet");
            return Ok(());
        }
        self.chat.picker = Some(SessionPicker::new(rows));
        Ok(())
    }

    pub(super) fn list_turns(&mut self) {
        let points = self.view.rewind_points().into_iter();
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
        self.session.send(Command::Pin { turn, pinned }).await?;
        let words = match pinned {
            Pinned::Yes => "is pinned: the model always sees it word for word",
            Pinned::No => "is no longer pinned",
        };
        self.chat
            .note(Tone::Info, format!("the input of turn {turn} {words}"));
        Ok(())
    }

    pub(super) async fn rewind(&mut self, turn: usize) -> Result<(), CliError> {
        let point = self.view.rewind_point(turn)?;
        let receipt = self.session.send(Command::Rewind { turn }).await?;
        self.catch_up(receipt.seq).await?;
        self.show_session().await;
        self.chat.note(
            Tone::Info,
            format!("continues before turn {turn}: {}", first_line(&point.text)),
        );
        Ok(())
    }

    /// Takes in what happened up to an entry, so that the screen shows it.
    pub(super) async fn catch_up(&mut self, seq: Option<u64>) -> Result<(), CliError> {
        while self.view.state().seq < seq.unwrap_or(0) {
            let event = self.events.next().await?;
            self.on_session_event(event).await;
        }
        Ok(())
    }
}

/// Loads a session from its journal, or creates a new one if there is none.
pub(super) async fn load_session(agent: &Arc<Agent>, id: SessionId) -> Result<Session, AgentError> {
    let mut session = agent.session(id);
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
        session: session.id().clone(),
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
