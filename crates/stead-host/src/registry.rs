//! The agents of a host by name. Those of folders are built again when their files have changed.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (writes), the network.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use stead_agent::{Agent, AgentBuilder};
use stead_core::ClientError;
use tokio::runtime::Handle;
use tokio::sync::Mutex;

/// Returns how an agent is built from its files, as often as they change.
type AgentSource = Arc<dyn Fn() -> AgentBuilder + Send + Sync>;

/// The agents of a host by name.
#[derive(Debug, Default)]
pub(crate) struct AgentRegistry {
    agents: std::sync::Mutex<HashMap<String, Arc<RegisteredAgent>>>,
}

/// An agent, and how it is built again.
struct RegisteredAgent {
    /// The agent as it was built last; none before its first use.
    current: Mutex<Option<Arc<Agent>>>,
    source: Option<AgentSource>,
}

impl fmt::Debug for RegisteredAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredAgent")
            .field("current", &self.current)
            .finish_non_exhaustive()
    }
}

impl AgentRegistry {
    /// Adds an agent, or replaces it.
    pub(crate) fn add(&self, name: String, agent: Arc<Agent>) {
        self.insert(name, Some(agent), None);
    }

    /// Adds an agent that is built at its first use, and again when its files have changed.
    pub(crate) fn add_source(
        &self,
        name: String,
        source: impl Fn() -> AgentBuilder + Send + Sync + 'static,
    ) {
        self.insert(name, None, Some(Arc::new(source)));
    }

    fn insert(&self, name: String, current: Option<Arc<Agent>>, source: Option<AgentSource>) {
        let registered = RegisteredAgent {
            current: Mutex::new(current),
            source,
        };
        self.lock().insert(name, Arc::new(registered));
    }

    /// Returns an agent as its files define it now. If they cannot be used, the error says why.
    pub(crate) async fn get(&self, name: &str) -> Result<Arc<Agent>, ClientError> {
        let known = self.lock().get(name).cloned();
        let unknown = || ClientError::refused(format!("there is no agent {name:?}"));
        let registered = known.ok_or_else(unknown)?;
        // Held while the agent is built: whoever comes meanwhile gets the same agent.
        let mut current = registered.current.lock().await;
        let Some(source) = &registered.source else {
            return current.clone().ok_or_else(unknown);
        };
        if let Some(agent) = &*current {
            match agent.workspace().changed_source().await {
                None => return Ok(agent.clone()),
                Some(path) => tracing::info!(agent = name, %path, "reading the workspace again"),
            }
        }
        let agent = build(source.clone()).await?;
        *current = Some(agent.clone());
        Ok(agent)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<RegisteredAgent>>> {
        self.agents
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Builds an agent on a thread for blocking work: opening a workspace reads many small files.
async fn build(source: AgentSource) -> Result<Arc<Agent>, ClientError> {
    let runtime = Handle::current();
    let building = tokio::task::spawn_blocking(move || runtime.block_on(source().build()));
    let built = building.await;
    let built = built.map_err(|error| ClientError::failed(error.to_string()))?;
    built.map_err(|error| ClientError::refused(error.to_string()))
}
