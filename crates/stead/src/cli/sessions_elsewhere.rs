//! Sessions that lie in the folder of a workspace, while its settings look for them in another place
//! or under another name.
//!
//! Effects: the environment, the terminal, the local disk (reads), the journal (reads).

use super::args::GlobalArgs;
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::workspace_dir;
use super::print::errln;
use std::collections::BTreeSet;
use std::path::Path;
use stead::agent::Agent;
use stead::core::{Owner, SessionId, counted};
use stead::place::{LocalSessions, PlaceKind, local_sessions};
use stead::workspace::AgentChoice;

/// The sessions of the folder that the agent does not see.
struct HiddenSessions {
    sessions: Vec<LocalSessions>,
    place: PlaceKind,
    /// Whether `stead workspace push` can bring them over.
    can_be_pushed: bool,
}

/// Says in one line which sessions of the folder the agent does not see. Refuses to begin the session
/// `id` if one of them has its name: two different sessions of a name cannot be brought together.
pub(crate) async fn look_for_hidden_sessions(
    common: &GlobalArgs,
    env: &ProcessEnv,
    agent: &Agent,
    id: Option<&SessionId>,
) -> Result<(), CliError> {
    let hidden = hidden_sessions(agent, &workspace_dir(common, env)?).await?;
    let Some(line) = hidden.describe(agent) else {
        return Ok(());
    };
    match id.filter(|id| {
        hidden
            .sessions
            .iter()
            .any(|local| local.sessions.contains(id))
    }) {
        Some(id) => Err(CliError::usage(format!(
            "session {id} lies in this folder, but this agent does not look there: {line}. To begin a \
             new session, give another name"
        ))),
        None => {
            errln!("{line}");
            Ok(())
        }
    }
}

async fn hidden_sessions(agent: &Agent, dir: &Path) -> Result<HiddenSessions, CliError> {
    let workspace = agent.workspace();
    let settings = workspace.place_settings(dir);
    let place = agent.place().kind();
    let own = &settings.agent;
    let own_state = dir
        .join(settings.runtime.as_str())
        .join("agents")
        .join(own.as_str());
    let has_own = place == PlaceKind::Local && own_state.join("sessions").exists();
    // Only the sessions of the default owner lie in the folder itself; those of named users lie in
    // folders of their own.
    let mut sessions = match *agent.owner() == Owner::default() && !has_own {
        true => local_sessions(&settings),
        false => Vec::new(),
    };
    match place {
        PlaceKind::Store if sessions.is_empty() => {}
        PlaceKind::Store => {
            let listed = agent.sessions().list_all().await?;
            let known: BTreeSet<SessionId> = listed.into_iter().map(|summary| summary.id).collect();
            for local in &mut sessions {
                local.sessions.retain(|id| !known.contains(id));
            }
        }
        PlaceKind::Local => {
            let chooses = workspace.definition.layout.def().agent_choice;
            if chooses == AgentChoice::ByWorkspace {
                sessions.clear();
            }
        }
    }
    sessions.retain(|local| !local.sessions.is_empty());
    Ok(HiddenSessions {
        sessions,
        place,
        can_be_pushed: settings.runtime.is_root(),
    })
}

impl HiddenSessions {
    /// Returns one line about the sessions, if there are any.
    fn describe(&self, agent: &Agent) -> Option<String> {
        let first = self.sessions.first()?;
        let count: usize = self.sessions.iter().map(|local| local.sessions.len()).sum();
        let sessions = counted(count, "session");
        let (are, them) = if count == 1 {
            ("is", "it")
        } else {
            ("are", "them")
        };
        Some(match (self.place, self.can_be_pushed) {
            (PlaceKind::Store, true) => format!(
                "{sessions} of this folder {are} not in the store: `stead workspace push` brings {them} over"
            ),
            (PlaceKind::Store, false) => format!(
                "{sessions} of this folder {are} not in the store; `filesystem: {{mode: local}}` uses {them} again"
            ),
            (PlaceKind::Local, _) => {
                let agent = agent.workspace().config().agent_id();
                let old = &first.agent;
                format!(
                    "there are no sessions of the agent {agent} yet, and {sessions} of {old}: `name: {old}` in the settings \
                     brings {them} back"
                )
            }
        })
    }
}
