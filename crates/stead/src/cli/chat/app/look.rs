//! What the person asks to see in `stead chat`: usage, memory, skills, questions, tool servers, and
//! the changes of files; and undoing them.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), the network.

use super::super::custom_commands::load_commands;
use super::super::state::{Looked, UndoStage};
use super::super::transcript::Tone;
use super::App;
use crate::cli::error::CliError;
use crate::cli::memory::status_lines;
use crate::cli::render::{call_line, tokens_line};
use crate::cli::sessions::{SessionFilter, newest_sessions};
use crate::cli::skills::skill_lines;
use crate::cli::undo::{command_lines, preview_undo};
use jiff::Timestamp;
use stead::agent::{UsageGrouping, UsagePeriod, usage_report};
use stead::core::RunId;
use stead::store::PageRequest;
use stead::workspace::{ActingKind, acting_parts};

/// The number of session ids that are completed.
const MAX_COMPLETED_IDS: usize = 50;

impl App<'_> {
    pub(super) async fn look(&mut self, what: Looked) -> Result<(), CliError> {
        let lines = match what {
            Looked::Usage => self.usage_lines().await?,
            Looked::Memory => {
                let status = self.agent.memory().status(self.agent.owner()).await?;
                status_lines(&status)
            }
            Looked::Skills => skill_lines(&self.common, self.env).await?,
            Looked::Approvals => self.question_lines().await?,
            Looked::Servers => self.server_lines(),
            Looked::Changes => self.change_lines().await?,
        };
        self.chat.note(Tone::Info, lines.join("\n"));
        Ok(())
    }

    async fn usage_lines(&self) -> Result<Vec<String>, CliError> {
        let log = self.agent.usage(self.agent.owner());
        let records = log.read().await?.records;
        let today = log.date(Timestamp::now());
        let of_today: Vec<_> = records
            .iter()
            .filter(|record| log.date(record.at) == today)
            .cloned()
            .collect();
        let all = UsagePeriod::default();
        let (_, total) = usage_report(&of_today, UsageGrouping::Model, all, |at| log.date(at));
        let id = self.view.id();
        let of_session: Vec<_> = records
            .into_iter()
            .filter(|record| record.session == id.as_str())
            .collect();
        let (rows, session) =
            usage_report(&of_session, UsageGrouping::Model, all, |at| log.date(at));
        let mut lines = vec![format!(
            "this session  {}",
            tokens_line(&session.usage, Some(session.cost))
        )];
        lines.extend(rows.iter().map(|row| {
            let numbers = tokens_line(&row.usage, Some(row.cost));
            format!("  {}  {numbers}", row.key)
        }));
        lines.push(format!(
            "today         {}",
            tokens_line(&total.usage, Some(total.cost))
        ));
        let unknown = total.unpriced_calls + session.unpriced_calls;
        if unknown > 0 {
            lines.push("some calls have an unknown price".to_owned());
        }
        Ok(lines)
    }

    async fn question_lines(&self) -> Result<Vec<String>, CliError> {
        let open = self.agent.open_questions(self.agent.owner()).list().await?;
        let mut lines: Vec<String> = open
            .iter()
            .map(|question| {
                let call = call_line(&question.tool, &question.args);
                format!("{}  {call}  ({})", question.id, question.title)
            })
            .collect();
        lines.push(match lines.is_empty() {
            true => "no question waits".to_owned(),
            false => "answer them in their sessions, or with `stead approvals`".to_owned(),
        });
        Ok(lines)
    }

    fn server_lines(&self) -> Vec<String> {
        let parts = acting_parts(&self.agent.workspace().definition);
        let servers = parts.iter().filter(|part| part.kind == ActingKind::Server);
        let mut lines: Vec<String> = servers
            .map(|part| format!("{}  ({})", part.summary, part.source))
            .collect();
        lines.push(match lines.is_empty() {
            true => "the workspace names no tool servers".to_owned(),
            false => "tool servers are not connected in this version".to_owned(),
        });
        lines
    }

    /// Returns the runs of the session, the newest first.
    fn runs(&self) -> Vec<RunId> {
        let turns = self.view.state().turns.iter();
        turns
            .rev()
            .filter_map(|turn| turn.starts_run.clone())
            .collect()
    }

    async fn change_lines(&self) -> Result<Vec<String>, CliError> {
        let undo = self.agent.undo(self.agent.owner(), self.view.id());
        let runs = self.runs();
        let plan = undo.plan(&runs).await?;
        let mut lines = crate::cli::undo::changes(&undo, &plan).await?;
        if lines.is_empty() {
            lines.push("the runs of this session changed no files".to_owned());
        }
        lines.extend(command_lines(&undo.commands(&runs).await?));
        Ok(lines)
    }

    /// Undoes the newest run of the session that changed files, or shows what that would do.
    pub(super) async fn undo_newest(&mut self, stage: UndoStage) -> Result<(), CliError> {
        let undo = self.agent.undo(self.agent.owner(), self.view.id());
        let Some(key) = undo.newest(Some(self.view.id())).await? else {
            let text = "no run of this session changed a file that could be restored";
            self.chat.note(Tone::Info, text);
            return Ok(());
        };
        let runs = [key.run.clone()];
        let mut lines = match stage {
            UndoStage::Shown => preview_undo(&undo, &runs).await?,
            UndoStage::Confirmed => {
                let done = crate::cli::undo::undo_all(&self.agent, self.view.id(), &runs).await?;
                let paths = done.steps.iter().map(|step| format!("  {}", step.path));
                std::iter::once("undone:".to_owned()).chain(paths).collect()
            }
        };
        lines.extend(command_lines(&undo.commands(&runs).await?));
        if stage == UndoStage::Shown {
            lines.push("`/undo yes` does it".to_owned());
        }
        self.chat.note(Tone::Info, lines.join("\n"));
        Ok(())
    }

    /// Reads the commands that the workspace defines, and the ids that are completed. A folder that
    /// nobody trusts adds no commands.
    pub(super) async fn load_custom_commands(&mut self) {
        let workspace = self.agent.workspace();
        if !workspace.trust.is_restricted() {
            self.chat.custom = load_commands(&*workspace.files).await;
        }
        let page = PageRequest::first(MAX_COMPLETED_IDS);
        let sessions = self.agent.sessions();
        let listed = newest_sessions(&*sessions, SessionFilter::WithoutSubagents, page).await;
        if let Ok(listed) = listed {
            let ids = listed.page.sessions.iter().map(|one| one.id.to_string());
            self.chat.session_ids = ids.collect();
        }
    }
}
