//! The agents that a workspace defines besides its own, and their roles.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (writes), the store (writes), the journal (writes), hooks, tools, the model.

use crate::subagents::{TaskIdentity, child_files};
use crate::{Agent, AgentError, AgentParts, Delegate, HookTask, Hooks, RunOptions, Session};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use stead_core::{Block, ModelScope, Owner, RunOutcome, SessionId};
use stead_model::{Model, ModelError, ModelSettings, connect};
use stead_vfs::{VPath, Vfs};
use stead_workspace::{AgentRole, AgentSpec, FeatureSwitch, SubagentSpecs, general_purpose};

/// Connects the models that agents of a workspace name.
#[derive(Clone)]
pub struct ModelConnector(Arc<ConnectFn>);

type ConnectFn = dyn Fn(&ModelSettings) -> Result<Arc<dyn Model>, ModelError> + Send + Sync;

impl ModelConnector {
    /// Creates a connector from a function.
    pub fn new(
        connect: impl Fn(&ModelSettings) -> Result<Arc<dyn Model>, ModelError> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(connect))
    }

    /// Connects to the model that `settings` describe.
    pub(crate) fn connect(&self, settings: &ModelSettings) -> Result<Arc<dyn Model>, ModelError> {
        (self.0)(settings)
    }
}

impl Default for ModelConnector {
    /// Connects models with the keys and endpoints of their settings only.
    fn default() -> Self {
        Self::new(|settings| connect(settings, &|_| None))
    }
}

impl fmt::Debug for ModelConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelConnector")
    }
}

/// The agents of a workspace: their definitions, and the agents made from them. Each is made once
/// and cached until its definition changes.
#[derive(Debug)]
pub struct WorkspaceAgents {
    parts: Arc<AgentParts>,
    hooks: Arc<Hooks>,
    cache: Mutex<CachedAgents>,
}

/// By name and role: the definition, and the agent made from it.
type CachedAgents = HashMap<(String, AgentRole), (Arc<AgentSpec>, Arc<Agent>)>;

/// The number of agents that are cached.
const MAX_CACHED_AGENTS: usize = 1000;

impl WorkspaceAgents {
    pub(crate) fn new(parts: Arc<AgentParts>, hooks: Arc<Hooks>) -> Self {
        Self {
            parts,
            hooks,
            cache: Mutex::default(),
        }
    }

    /// Returns the names of the agents that a session of `owner` can switch to, including the
    /// workspace's own.
    pub async fn switchable(&self, owner: &Owner) -> Result<Vec<String>, AgentError> {
        let files = self
            .parts
            .place
            .files(owner, &SessionId::sessionless(), None);
        self.switchable_in(owner, &files).await
    }

    /// Like [`switchable`](Self::switchable), with the definitions in the tree `files`.
    pub(crate) async fn switchable_in(
        &self,
        owner: &Owner,
        files: &Arc<dyn Vfs>,
    ) -> Result<Vec<String>, AgentError> {
        let files = self.parts.workspace.prompt_files(files);
        let specs = self.specs(owner, &files).await?;
        let mut names: Vec<String> = specs
            .values()
            .filter(|spec| spec.mode.is_primary())
            .map(|spec| spec.name.clone())
            .collect();
        let own = self.own_name();
        if !names.contains(&own) {
            names.insert(0, own);
        }
        Ok(names)
    }

    /// Reads the definitions of the agents other than the workspace's own, by name.
    pub(crate) async fn specs(
        &self,
        owner: &Owner,
        files: &Arc<dyn Vfs>,
    ) -> Result<BTreeMap<String, Arc<AgentSpec>>, AgentError> {
        let workspace = &self.parts.workspace;
        let own = match &workspace.definition.paths.subagents {
            Some(folder) => {
                let own =
                    crate::features::user_folder(&workspace.definition, owner, &**files).await;
                own.and_then(|own: VPath| own.join(folder.as_str()).ok())
            }
            None => None,
        };
        let SubagentSpecs { mut specs, broken } =
            workspace.subagents(&**files, own.as_ref()).await?;
        let general = general_purpose();
        if !workspace
            .config()
            .disable
            .contains(FeatureSwitch::Subagents)
            && !broken.contains(&general.name)
        {
            specs
                .entry(general.name.clone())
                .or_insert_with(|| Arc::new(general));
        }
        Ok(specs)
    }

    /// Returns the agent that `spec` defines. Only called on the workspace's own agent.
    pub(crate) fn agent(
        &self,
        spec: &Arc<AgentSpec>,
        part: AgentRole,
    ) -> Result<Arc<Agent>, AgentError> {
        let key = (spec.name.clone(), part);
        if let Some((known, role)) = self.lock().get(&key)
            && known == spec
        {
            return Ok(role.clone());
        }
        let role = Agent::new(self.parts_for(spec, part)?, self.hooks.clone())?;
        let mut roles = self.lock();
        if roles.len() >= MAX_CACHED_AGENTS {
            roles.clear();
        }
        roles.insert(key, (spec.clone(), role.clone()));
        Ok(role)
    }

    /// Refuses models that read or write files past the gate (`scripted:`, `replay:`, `record:`),
    /// because an agent can write definitions of agents itself. If the workspace's own model is
    /// such a file, its agents may use one, too.
    fn check_model(&self, spec: &AgentSpec, wanted: &str) -> Result<(), AgentError> {
        let provider = |name: &str| name.split(':').next().unwrap_or_default().to_lowercase();
        let plays = |name: &str| matches!(provider(name).as_str(), "scripted" | "replay");
        let records = provider(wanted) == "record";
        let own = self
            .parts
            .workspace
            .config()
            .model
            .as_ref()
            .map(|model| model.name.clone())
            .unwrap_or_default();
        if records || (plays(wanted) && !plays(&own) && !plays(self.parts.model.name())) {
            return Err(AgentError::FileAsModel {
                agent: spec.name.clone(),
                model: wanted.to_owned(),
            });
        }
        Ok(())
    }

    fn parts_for(&self, spec: &AgentSpec, part: AgentRole) -> Result<AgentParts, AgentError> {
        let workspace = self.parts.workspace.for_agent(spec, part);
        let mut parts = AgentParts {
            workspace,
            ..(*self.parts).clone()
        };
        if let Some(settings) = parts.workspace.config().model.clone()
            && spec.model.as_ref().is_some_and(|own| !own.name.is_empty())
        {
            self.check_model(spec, &settings.name)?;
            parts.model = self.parts.model_connector.connect(&settings)?;
            parts.params = settings.params();
            // A model that was chosen for all agents stays that of this one.
            if parts.session_model.scope == ModelScope::Default {
                parts.session_model = settings.to_session_model(ModelScope::Default, &|_| None);
            }
        } else if let Some(own) = &spec.model {
            parts.params.temperature = own.temperature.or(parts.params.temperature);
        }
        Ok(parts)
    }

    /// The name of the agent that is active if no other was chosen.
    pub(crate) fn default_name(&self) -> String {
        let definition = &self.parts.workspace.definition;
        definition
            .default_delegate
            .clone()
            .unwrap_or_else(|| definition.config.agent_id().to_string())
    }

    /// The name of this agent among those of its workspace.
    pub(crate) fn own_name(&self) -> String {
        let active = self.parts.workspace.definition.active.clone();
        active.unwrap_or_else(|| self.parts.workspace.config().agent_id().to_string())
    }

    fn lock(&self) -> MutexGuard<'_, CachedAgents> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delegates the tasks of hooks to agents of the workspace. Those agents have no hooks.
pub(crate) struct SubagentDelegate(pub(crate) Weak<Agent>);

impl Delegate for SubagentDelegate {
    fn ask<'a>(&'a self, task: HookTask<'a>) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let HookTask {
                owner,
                agent,
                prompt,
                bounds,
            } = task;
            let workspace_agent = self.0.upgrade().ok_or("the agent is gone")?;
            let to_text = |error: AgentError| error.to_string();
            let id = SessionId::fresh();
            let files = workspace_agent
                .workspace()
                .prompt_files(&workspace_agent.parts.place.files(owner, &id, None));
            let specs = workspace_agent
                .agents()
                .specs(owner, &files)
                .await
                .map_err(to_text)?;
            let spec = specs
                .get(agent)
                .ok_or_else(|| format!("there is no agent {agent:?}"))?;
            let parts = workspace_agent.agents().parts_for(spec, AgentRole::Child);
            let parts = parts.map_err(to_text)?;
            let role = Agent::new(parts, Arc::new(Hooks::new(Vec::new()))).map_err(to_text)?;
            let files = child_files(spec)?;
            let identity = TaskIdentity {
                task: "hook".to_owned(),
                agent: spec.name.clone(),
                label: None,
            };
            let origin = bounds.clone().into_spawned(identity, files);
            // The role is its own workspace agent, so that its subagents have no hooks either.
            let mut session = Session::of_subagent(role.clone(), role, owner.clone(), id)
                .with_origin(Some(origin));
            let report = session
                .run(vec![Block::text(prompt)], RunOptions::default())
                .await
                .map_err(to_text)?;
            match report.outcome {
                RunOutcome::Completed => Ok(report.text),
                outcome => Err(format!(
                    "{}: {}",
                    outcome.as_str(),
                    report.reason.unwrap_or_default()
                )),
            }
        })
    }
}
