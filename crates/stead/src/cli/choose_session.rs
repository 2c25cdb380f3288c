//! The session that a command means: an id, the beginning of one, a title, or the newest session.
//!
//! Effects: randomness, the terminal, the journal (reads).

use super::error::CliError;
use super::print::errln;
use super::sessions::{SessionFilter, newest_sessions};
use clap::Args;
use stead::agent::Agent;
use stead::core::SessionId;
use stead::store::{PageRequest, SessionSummary};

/// The number of sessions that an ambiguous text is explained with.
const MAX_LISTED: usize = 8;
/// The shortest beginning of an id that `-s` takes for one. Anything shorter may be a name that a
/// person gives to a new session.
const MIN_PREFIX_CHARS: usize = 4;

/// The flags that choose a session to continue, or name a new one.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct SessionFlags {
    /// The session to continue: its id, the beginning of it, or its title; or the name of a new one
    #[arg(short, long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Continue the newest session
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) newest: bool,
}

impl SessionFlags {
    /// Whether the flags mean a session that may be there already.
    pub(crate) fn may_continue(&self) -> bool {
        self.session.is_some() || self.newest
    }

    /// Returns the session that the flags mean, or a new one. A session that `-s` begins is
    /// announced, so that a mistyped id does not go unnoticed.
    pub(crate) async fn choose(&self, agent: &Agent) -> Result<SessionId, CliError> {
        if self.newest {
            return newest_session(agent, |_| true).await?.ok_or_else(|| {
                CliError::usage("there is no session to continue: omit --continue")
            });
        }
        let Some(text) = &self.session else {
            return Ok(SessionId::fresh());
        };
        let exact = session_id(text);
        if let Ok(exact) = &exact
            && agent.sessions().tail(exact).await?.is_some()
        {
            return Ok(exact.clone());
        }
        let is_prefix = text.chars().count() >= MIN_PREFIX_CHARS;
        let is_meant =
            |one: &SessionSummary| one.title == *text || (is_prefix && one.id.is_generated());
        let mut found = matching_sessions(agent, text).await?;
        found.retain(is_meant);
        match found.as_slice() {
            [one] => {
                errln!("session {} · {}", one.id, one.title);
                Ok(one.id.clone())
            }
            [] => {
                let exact = exact?;
                errln!("new session {exact}");
                Ok(exact)
            }
            [_, _, ..] => Err(ambiguous(text, &found)),
        }
    }
}

/// Returns a new id, or the one that a flag gives.
pub(crate) fn new_session_id(flag: Option<&str>) -> Result<SessionId, CliError> {
    flag.map_or_else(|| Ok(SessionId::fresh()), session_id)
}

fn session_id(text: &str) -> Result<SessionId, CliError> {
    SessionId::new(text).map_err(|error| CliError::usage(format!("session {text:?}: {error}")))
}

/// Returns the session with this id or title, or the only one whose id begins with the text. An id
/// that no session has is returned as it is: what is done with it says that it is not there.
pub(crate) async fn find_session(agent: &Agent, text: &str) -> Result<SessionId, CliError> {
    let exact = session_id(text);
    if let Ok(exact) = &exact
        && let Ok(Some(_)) = agent.sessions().tail(exact).await
    {
        return Ok(exact.clone());
    }
    let found = matching_sessions(agent, text).await?;
    match found.as_slice() {
        [one] => Ok(one.id.clone()),
        [] => exact,
        [_, _, ..] => Err(ambiguous(text, &found)),
    }
}

/// Returns the newest session that is not a subagent's and that `fits`.
pub(crate) async fn newest_session(
    agent: &Agent,
    fits: impl Fn(&SessionSummary) -> bool,
) -> Result<Option<SessionId>, CliError> {
    let sessions = agent.sessions();
    let mut request = PageRequest {
        limit: 50,
        after: None,
    };
    loop {
        let filter = SessionFilter::WithoutSubagents;
        let page = newest_sessions(&*sessions, filter, request).await?.page;
        if let Some(found) = page.sessions.into_iter().find(&fits) {
            return Ok(Some(found.id));
        }
        let Some(after) = page.next else {
            return Ok(None);
        };
        request = PageRequest {
            limit: 50,
            after: Some(after),
        };
    }
}

/// Returns the sessions whose title is `text` or whose id begins with it.
async fn matching_sessions(agent: &Agent, text: &str) -> Result<Vec<SessionSummary>, CliError> {
    let mut all = agent.sessions().list_all().await?;
    if text.is_empty() {
        return Ok(Vec::new());
    }
    all.retain(|one| one.title == text || one.id.as_str().starts_with(text));
    let titled: Vec<SessionSummary> = all
        .iter()
        .filter(|one| one.title == text)
        .cloned()
        .collect();
    Ok(if titled.len() == 1 { titled } else { all })
}

fn ambiguous(text: &str, found: &[SessionSummary]) -> CliError {
    let mut lines = vec![format!("{text:?} may mean any of these sessions:")];
    for one in found.iter().take(MAX_LISTED) {
        lines.push(format!("  {}  {}", one.id, one.title));
    }
    if found.len() > MAX_LISTED {
        lines.push(format!("  and {} more", found.len() - MAX_LISTED));
    }
    CliError::usage(lines.join("\n"))
}
