//! What all sessions of an agent share.

use crate::features::{self, Feature};
use crate::workspace_agents::{AgentCache, ModelConnector, SubagentDelegate};
use crate::{AgentError, GateRules, Hooks, Session};
use std::fmt;
use std::sync::Arc;
use stead_core::{Owner, SessionId, Usage, Usd};
use stead_model::{Caching, Model, Params, Reply, ReportedLimits};
use stead_sandbox::Sandbox;
use stead_store::Sessions;
use stead_tools::{Registry, Tool, client_tool, known_tool};
use stead_vfs::VPath;
use stead_workspace::{Place, Policy, Workspace};

/// An agent: a workspace and a model, ready for any number of sessions.
#[derive(Debug)]
pub struct Agent {
    pub(crate) parts: AgentParts,
    pub(crate) gate: GateRules,
    pub(crate) features: Vec<Box<dyn Feature>>,
    /// What it can do on every turn: the tools of its features, and those it was given.
    pub(crate) tools: Registry,
    /// Whom to ask when something happens.
    pub(crate) hooks: Arc<Hooks>,
    /// What the model's endpoint said of it, once it was asked.
    pub(crate) model_report: tokio::sync::OnceCell<ReportedLimits>,
    /// The same workspace as other agents of it find it.
    pub(crate) agent_cache: AgentCache,
}

impl fmt::Debug for AgentParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentParts")
            .field("workspace", &self.workspace)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// The parts of an agent, which [`crate::AgentBuilder`] puts together.
#[derive(Clone)]
pub(crate) struct AgentParts {
    /// The workspace: files and settings.
    pub(crate) workspace: Workspace,
    /// The model that is asked.
    pub(crate) model: Arc<dyn Model>,
    /// The model that extracts and merges facts, if it is not `model`.
    pub(crate) memory_model: Option<Arc<dyn Model>>,
    /// The parameters of each request.
    pub(crate) params: Params,
    /// The model that writes summaries, if it is not `model`.
    pub(crate) summary_model: Option<Arc<dyn Model>>,
    /// Where files and sessions lie.
    pub(crate) place: Arc<dyn Place>,
    /// The owner of sessions that are opened without naming one.
    pub(crate) owner: Owner,
    /// Where commands run. Without one, there are no commands.
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
    /// The tools beside those of the features.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The folder of the workspace that is worked in.
    pub(crate) working_folder: VPath,
    /// Connects to the models that other agents of the workspace name.
    pub(crate) model_connector: ModelConnector,
}

/// The first of `names` that is no tool of this agent and none that is known.
pub(crate) fn unknown_tool<'a>(
    names: impl IntoIterator<Item = &'a String>,
    tools: &Registry,
) -> Option<String> {
    let known = |name: &str| {
        name.starts_with("mcp__") || known_tool(name).is_some() || tools.find(name).is_some()
    };
    names.into_iter().find(|name| !known(name)).cloned()
}

impl Agent {
    /// Returns the agent made of `parts`.
    pub(crate) fn new(parts: AgentParts) -> Result<Arc<Self>, AgentError> {
        let hooks = Arc::new(Hooks::new(parts.workspace.definition.hooks.clone()));
        let agent = Self::with_hooks(parts, hooks)?;
        agent
            .hooks
            .set_default_delegate(Arc::new(SubagentDelegate(Arc::downgrade(&agent))));
        Ok(agent)
    }

    /// Returns the agent made of `parts` that runs `hooks`.
    pub(crate) fn with_hooks(
        parts: AgentParts,
        hooks: Arc<Hooks>,
    ) -> Result<Arc<Self>, AgentError> {
        let features = features::all(&parts);
        let clients = parts
            .workspace
            .config()
            .client_tools
            .iter()
            .map(|tool| client_tool(tool.spec()));
        let own = parts.tools.iter().cloned().chain(clients);
        let tools = Registry::new(
            features
                .iter()
                .flat_map(|feature| feature.tools())
                .chain(own),
        )?;
        // Rules name tools as people do; the gate knows canonical names.
        let canonical = |name: &str| match (tools.find(name), known_tool(name)) {
            (Some(tool), _) => tool.spec().name.clone(),
            (None, Some(known)) => known.name.to_owned(),
            (None, None) => name.to_owned(),
        };
        if let Some(name) = unknown_tool(parts.workspace.config().approvals.keys(), &tools) {
            return Err(AgentError::NoSuchTool {
                setting: "approvals",
                name,
            });
        }
        let approvals = parts.workspace.config().approvals.iter();
        let approvals = approvals.map(|(name, approval)| (canonical(name), approval.clone()));
        let gate = GateRules {
            approvals: approvals.collect(),
        };
        let reported = tokio::sync::OnceCell::new();
        let roles = AgentCache::default();
        Ok(Arc::new(Self {
            parts,
            gate,
            features,
            tools,
            hooks,
            model_report: reported,
            agent_cache: roles,
        }))
    }

    /// A session of this agent and its usual owner. Nothing is read or written until it is used.
    pub fn session(self: &Arc<Self>, id: SessionId) -> Session {
        self.session_of(self.parts.owner.clone(), id)
    }

    /// A session of this agent and `owner`, who sees nothing of what is another's.
    pub fn session_of(self: &Arc<Self>, owner: Owner, id: SessionId) -> Session {
        Session::new(self.clone(), owner, id)
    }

    /// Where the sessions of its usual owner are kept.
    pub fn sessions(&self) -> Arc<dyn Sessions> {
        self.parts.place.sessions(&self.parts.owner)
    }

    /// Where its files and sessions lie.
    pub fn place(&self) -> &Arc<dyn Place> {
        &self.parts.place
    }

    /// Whose sessions they are, unless said otherwise.
    pub fn owner(&self) -> &Owner {
        &self.parts.owner
    }

    /// Its workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.parts.workspace
    }

    /// The model it asks.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.parts.model
    }

    /// What it can do on every turn, before lists narrow it.
    pub fn tools(&self) -> &Registry {
        &self.tools
    }

    /// Whom it asks when something happens.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// The gate's rules.
    pub fn gate(&self) -> &GateRules {
        &self.gate
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.parts.workspace.config().policy
    }

    /// What an answer cost, if the price of the model that gave it is known.
    pub(crate) fn cost(&self, reply: &Reply, caching: Caching) -> Option<Usd> {
        self.cost_of(&*self.parts.model, reply, caching)
    }

    /// The same for an answer of `model`.
    pub(crate) fn cost_of(
        &self,
        model: &dyn Model,
        reply: &Reply,
        caching: Caching,
    ) -> Option<Usd> {
        // A provider that reports no usage did not work for nothing.
        if reply.usage == Usage::default() {
            return None;
        }
        Some(
            caching
                .price(self.price_from(model, &reply.model)?)
                .cost(&reply.usage),
        )
    }
}
