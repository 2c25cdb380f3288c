//! State that lies elsewhere in the folder than it is looked for.
//!
//! Effects: the clock, the local disk (writes).

use crate::local::home_disk;
use crate::{PlaceError, PlaceSettings};
use std::path::PathBuf;
use std::sync::Arc;
use stead_core::{AgentId, SessionId, counted};
use stead_store::{Disk, MovedAgents, agents_in, move_agents};

/// The folder of the state of agents.
const AGENTS: &str = "agents";
/// What may be the agent's in a folder that is an agent, and is not in an ordinary project.
const PARTS: [&str; 7] = [
    "MEMORY.md",
    "memory",
    "skills",
    "subagents",
    "knowledge",
    "hooks",
    "profiles",
];

/// Moves the state that earlier versions kept in `agents/` of an ordinary project into the folder of
/// the agent. Returns what to tell a person.
pub(crate) fn adopt_earlier_state(
    settings: &PlaceSettings,
    disk: Arc<dyn Disk>,
) -> Result<Vec<String>, PlaceError> {
    if settings.home.is_root() {
        return Ok(Vec::new());
    }
    let home = &settings.home;
    let from = settings.dir.join(AGENTS);
    let to = settings.dir.join(home.as_str()).join(AGENTS);
    let disk = home_disk(settings, disk);
    let MovedAgents {
        agents,
        sessions,
        left,
    } = move_agents(&*disk, &from, &to)?;
    let left = left.iter().map(|agent| {
        format!("{AGENTS}/{agent} of an earlier version was left: there is {home}/{AGENTS}/{agent}")
    });
    let mut notices: Vec<String> = left.collect();
    if !agents.is_empty() {
        let sessions = counted(sessions, "session");
        notices.push(format!(
            "{sessions} of an earlier version moved from {AGENTS}/ to {home}/{AGENTS}/"
        ));
        notices.extend(hint_at_parts(settings));
    }
    Ok(notices)
}

/// Returns a hint at files that are no longer the agent's.
fn hint_at_parts(settings: &PlaceSettings) -> Option<String> {
    let parts = PARTS
        .into_iter()
        .filter(|part| settings.dir.join(part).exists());
    let parts: Vec<&str> = parts.collect();
    let home = &settings.home;
    (!parts.is_empty()).then(|| {
        format!(
            "this folder is an ordinary project now, so {} in it are not the agent's (which are in {home}/); \
             `stead init` makes it an agent, with these",
            parts.join(", ")
        )
    })
}

/// The sessions of an agent in a local folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalSessions {
    /// The agent.
    pub agent: AgentId,
    /// The sessions.
    pub sessions: Vec<SessionId>,
}

/// Returns the sessions that lie in the folder of a workspace, also where the settings name another
/// place or another agent.
pub fn local_sessions(settings: &PlaceSettings) -> Vec<LocalSessions> {
    let agents: PathBuf = settings.dir.join(settings.runtime.as_str()).join(AGENTS);
    let found = agents_in(&agents).into_iter();
    let sessions = |journals: Vec<PathBuf>| {
        let names = journals.into_iter().filter_map(|path| {
            let name = path
                .file_name()?
                .to_str()?
                .split_once(".log.")?
                .0
                .to_owned();
            SessionId::new(name).ok()
        });
        names.collect()
    };
    found
        .map(|(agent, journals)| LocalSessions {
            agent,
            sessions: sessions(journals),
        })
        .collect()
}
