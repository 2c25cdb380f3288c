//! The agents of a workspace: the same workspace, model and place, as each of them finds it.

use crate::subagents::{TaskIdentity, child_files};
use crate::{
    Agent, AgentError, AgentParts, Delegate, DelegationBounds, Hooks, RunOptions, Session,
};
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use stead_core::{Block, Owner, RunOutcome, SessionId};
use stead_model::{Model, ModelError, ModelSettings, connect};
use stead_vfs::{VPath, Vfs};
use stead_workspace::{AgentRole, AgentSpec, FeatureSwitch, SubagentSpecs, general_purpose};

/// Connects to the models that settings name.
#[derive(Clone)]
pub struct ModelConnector(Arc<ConnectFn>);

type ConnectFn = dyn Fn(&ModelSettings) -> Result<Arc<dyn Model>, ModelError> + Send + Sync;

impl ModelConnector {
    /// Returns a connector that calls `connect`.
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
    /// With keys and endpoints that their settings give, and no others.
    fn default() -> Self {
        Self::new(|settings| connect(settings, &|_| None))
    }
}

impl fmt::Debug for ModelConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ModelConnector")
    }
}

/// Agents of one workspace that were put together: each once, until its definition changes.
#[derive(Debug, Default)]
pub(crate) struct AgentCache(Mutex<CachedAgents>);

/// By name and part: the definition, and the agent made of it.
type CachedAgents = HashMap<(String, AgentRole), (Arc<AgentSpec>, Arc<Agent>)>;

/// Roles that are kept.
const MAX_CACHED_AGENTS: usize = 1000;

impl Agent {
    /// The agents that there are beside the workspace's own, by name, as their files say now.
    pub(crate) async fn agent_specs(
        &self,
        owner: &Owner,
        files: &Arc<dyn Vfs>,
    ) -> Result<BTreeMap<String, Arc<AgentSpec>>, AgentError> {
        let workspace = &self.parts.workspace;
        let own = match &workspace.definition.paths.subagents {
            Some(folder) => {
                let own = crate::features::user_folder(owner, &**files).await;
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

    /// The same workspace as `spec` finds it. Only asked of the workspace's own agent.
    pub(crate) fn agent_for(
        &self,
        spec: &Arc<AgentSpec>,
        part: AgentRole,
    ) -> Result<Arc<Self>, AgentError> {
        let key = (spec.name.clone(), part);
        if let Some((known, role)) = self.agent_cache.lock().get(&key)
            && known == spec
        {
            return Ok(role.clone());
        }
        let role = Self::with_hooks(self.parts_for(spec, part)?, self.hooks.clone())?;
        let mut roles = self.agent_cache.lock();
        if roles.len() >= MAX_CACHED_AGENTS {
            roles.clear();
        }
        roles.insert(key, (spec.clone(), role.clone()));
        Ok(role)
    }

    /// Agents may be written by the agent itself, so none of them reads or writes files as if they
    /// were models, past the gate. Where the workspace itself plays from a file, they may, too.
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
            ..self.parts.clone()
        };
        if let Some(settings) = parts.workspace.config().model.clone()
            && spec.model.as_ref().is_some_and(|own| !own.name.is_empty())
        {
            self.check_model(spec, &settings.name)?;
            parts.model = self.parts.model_connector.connect(&settings)?;
            parts.params = settings.params();
        } else if let Some(own) = &spec.model {
            parts.params.temperature = own.temperature.or(parts.params.temperature);
        }
        Ok(parts)
    }

    /// The name of the agent that acts where nobody asked for another.
    pub(crate) fn default_agent_name(&self) -> String {
        let definition = &self.parts.workspace.definition;
        definition
            .default_delegate
            .clone()
            .unwrap_or_else(|| definition.config.agent_id().to_string())
    }

    /// The name of the agent that it is among those of its workspace.
    pub(crate) fn agent_name(&self) -> String {
        let active = self.parts.workspace.definition.active.clone();
        active.unwrap_or_else(|| self.parts.workspace.config().agent_id().to_string())
    }
}

/// Hands the tasks of hooks to agents of the workspace, whose own hooks are not asked.
pub(crate) struct SubagentDelegate(pub(crate) Weak<Agent>);

impl Delegate for SubagentDelegate {
    fn ask<'a>(
        &'a self,
        agent: &'a str,
        task: &'a str,
        bound: &'a DelegationBounds,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let home = self.0.upgrade().ok_or("the agent is gone")?;
            let words = |error: AgentError| error.to_string();
            let owner = home.parts.owner.clone();
            let id = SessionId::fresh();
            let files = home
                .workspace()
                .prompt_files(&home.parts.place.files(&owner, &id, None));
            let specs = home.agent_specs(&owner, &files).await.map_err(words)?;
            let spec = specs
                .get(agent)
                .ok_or_else(|| format!("there is no agent {agent:?}"))?;
            let parts = home.parts_for(spec, AgentRole::Child).map_err(words)?;
            let role = Agent::with_hooks(parts, Arc::new(Hooks::new(Vec::new()))).map_err(words)?;
            let files = child_files(spec)?;
            let named = TaskIdentity {
                task: "hook".to_owned(),
                agent: spec.name.clone(),
                label: None,
            };
            let spawned = bound.clone().into_spawned(named, files);
            // Its own helpers are not asked about either.
            let mut session = Session::with_agent(role.clone(), role, owner, id, Some(spawned));
            let report = session
                .run(vec![Block::text(task)], RunOptions::default())
                .await
                .map_err(words)?;
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

impl AgentCache {
    fn lock(&self) -> std::sync::MutexGuard<'_, CachedAgents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
