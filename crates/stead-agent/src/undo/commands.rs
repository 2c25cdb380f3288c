//! The commands of runs. Undo cannot take back what they did, so it names them.
//!
//! Effects: the journal (reads).

use super::UndoHistory;
use crate::AgentError;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use stead_core::{Block, Entry, JournalLine, RunId, SessionId};
use stead_store::RunKey;
use stead_tools::builtin::EXECUTE;

/// The number of sessions in which the newest run with commands is looked for.
const MAX_SEARCHED_SESSIONS: usize = 50;

impl UndoHistory {
    /// Returns the commands that `runs` of the session started, in order.
    pub async fn commands(&self, runs: &[RunId]) -> Result<Vec<String>, AgentError> {
        let lines = self.sessions.read(&self.session).await?;
        let commands = commands_by_run(&lines).into_iter();
        Ok(commands
            .filter(|(run, _)| runs.contains(run))
            .map(|(_, command)| command)
            .collect())
    }

    /// Returns the newest run that started a command, of `session` or of any session of the owner,
    /// with its commands.
    pub async fn newest_with_commands(
        &self,
        session: Option<&SessionId>,
    ) -> Result<Option<(RunKey, Vec<String>)>, AgentError> {
        let sessions = match session {
            Some(session) => vec![session.clone()],
            None => {
                let all = self.sessions.list_all().await?.into_iter();
                let newest = all.take(MAX_SEARCHED_SESSIONS);
                newest.map(|summary| summary.id).collect()
            }
        };
        for session in sessions {
            let commands = commands_by_run(&self.sessions.read(&session).await?);
            let Some(run) = commands.last().map(|(run, _)| run.clone()) else {
                continue;
            };
            let of_run = commands.into_iter().filter(|(other, _)| *other == run);
            let commands = of_run.map(|(_, command)| command).collect();
            return Ok(Some((RunKey { session, run }, commands)));
        }
        Ok(None)
    }
}

/// Returns every command that was started, with its run.
fn commands_by_run(lines: &[JournalLine]) -> Vec<(RunId, String)> {
    let mut asked: BTreeMap<(&RunId, &str), &Value> = BTreeMap::new();
    let mut started = BTreeSet::new();
    let mut commands = Vec::new();
    for line in lines {
        match &line.entry {
            Entry::Model(reply) => {
                asked.extend(reply.content.iter().filter_map(|block| match block {
                    Block::ToolCall(call) => Some(((&reply.run, call.id.as_str()), &call.args)),
                    Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => None,
                }))
            }
            Entry::Decision(decision) => {
                if let Some(args) = &decision.args {
                    asked.insert((&decision.run, &decision.id), args);
                }
            }
            Entry::Call(intent) if intent.tool == EXECUTE.name => {
                let nested = intent.nested.as_ref().map(|nested| &nested.args);
                let known = asked.get(&(&intent.run, intent.id.as_str())).copied();
                // A call that a crash interrupted may have two intents.
                if started.insert((&intent.run, &intent.id)) {
                    let args = known.or(nested);
                    commands.push((intent.run.clone(), command_of(args)));
                }
            }
            Entry::Session(_)
            | Entry::User(_)
            | Entry::Call(_)
            | Entry::Result(_)
            | Entry::Ask(_)
            | Entry::Notice(_)
            | Entry::Steer(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Compaction(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_) => {}
        }
    }
    commands
}

/// Returns the command line of a call.
fn command_of(args: Option<&Value>) -> String {
    let text = |name: &str| args.and_then(|args| args.get(name)?.as_str());
    let command = text("command").or_else(|| text("cmd"));
    command.unwrap_or("a command").to_owned()
}
