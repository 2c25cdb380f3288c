//! The agent: the parts that all its sessions share.
//!
//! Effects: the clock.

use crate::approvals::PersonKey;
use crate::features::{self, Feature};
use crate::memory::AgentMemoryContext;
use crate::model_facts::ModelLimits;
use crate::session_models::{ModelVariants, SessionModels};
use crate::workspace_agents::{ModelConnector, WorkspaceAgents};
use crate::{
    AgentError, Budget, Clock, ConversationArchive, GarbageCollector, GateRules, GrantKeys,
    GrantStore, Hooks, Lookup, OpenQuestions, Session, SessionSeals, Sessionless, SideSpending,
    SideTotal, UndoHistory, UsageLog,
};
use std::fmt;
use std::sync::Arc;
use stead_core::{Owner, SessionId, SessionModel};
use stead_memory::Memory;
use stead_model::{Model, Params};
use stead_place::{Place, PlaceKind};
use stead_sandbox::Sandbox;
use stead_store::Sessions;
use stead_tools::{Registry, Tool, client_tool, known_tool};
use stead_vfs::VPath;
use stead_workspace::{Policy, Workspace};

/// An agent: a workspace and a model, ready for any number of sessions.
///
/// `Agent` itself only starts sessions and holds the parts. Everything else is done by small types
/// that are made from those parts: [`Agent::usage`], [`Agent::undo`], [`Agent::memory`] and so on.
#[derive(Debug)]
pub struct Agent {
    pub(crate) parts: Arc<AgentParts>,
    pub(crate) gate: GateRules,
    pub(crate) features: Vec<Box<dyn Feature>>,
    /// The tools of the program and of the client; the features add theirs for each turn.
    pub(crate) tools: Registry,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) model_limits: ModelLimits,
    /// This agent with other models, for sessions that recorded one.
    pub(crate) model_variants: ModelVariants,
    workspace_agents: WorkspaceAgents,
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
    /// Where the key for grants is kept; none = all grants count.
    pub(crate) grant_keys: Option<Arc<dyn GrantKeys>>,
    /// The key for what sessions and inboxes allow; none = all of it counts.
    pub(crate) person_key: Option<Arc<PersonKey>>,
    /// The model that is asked.
    pub(crate) model: Arc<dyn Model>,
    /// The model that extracts and merges facts, if it is not `model`.
    pub(crate) memory_model: Option<Arc<dyn Model>>,
    /// The parameters of each request.
    pub(crate) params: Params,
    /// The model that writes summaries, if it is not `model`.
    pub(crate) summary_model: Option<Arc<dyn Model>>,
    /// The place of files and sessions.
    pub(crate) place: Arc<dyn Place>,
    /// The owner of sessions that are opened without naming one.
    pub(crate) owner: Owner,
    /// Where commands run; `None` if there are no commands.
    pub(crate) sandbox: Option<Arc<dyn Sandbox>>,
    /// The tools beside those of the features.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    /// The folder of the workspace that is worked in.
    pub(crate) working_folder: VPath,
    /// Connects to the models that other agents of the workspace name.
    pub(crate) model_connector: ModelConnector,
    /// `model`, as sessions record it.
    pub(crate) session_model: SessionModel,
    /// How the models of sessions are found.
    pub(crate) session_models: SessionModels,
    /// The clock by which memory decides what is due.
    pub(crate) clock: Clock,
    /// What calls beside the answers of runs cost in this process.
    pub(crate) side_spending: Arc<SideSpending>,
}

/// Returns the first of `names` that is neither a tool of this agent nor a known tool.
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
    /// Returns the agent made of `parts` that runs `hooks`.
    pub(crate) fn new(parts: AgentParts, hooks: Arc<Hooks>) -> Result<Arc<Self>, AgentError> {
        let features = features::all(&parts);
        let clients = parts
            .workspace
            .config()
            .client_tools
            .iter()
            .map(|tool| client_tool(tool.spec()));
        let tools = Registry::new(parts.tools.iter().cloned().chain(clients))?;
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
        let parts = Arc::new(parts);
        Ok(Arc::new(Self {
            gate,
            features,
            tools,
            model_limits: ModelLimits::new(parts.model.clone()),
            model_variants: ModelVariants::default(),
            workspace_agents: WorkspaceAgents::new(parts.clone(), hooks.clone()),
            parts,
            hooks,
        }))
    }

    /// Returns a session of the default owner. Nothing is read or written until it is used.
    pub fn session(self: &Arc<Self>, id: SessionId) -> Session {
        self.session_of(self.parts.owner.clone(), id)
    }

    /// Returns a session of `owner`, which sees nothing of other owners.
    pub fn session_of(self: &Arc<Self>, owner: Owner, id: SessionId) -> Session {
        Session::new(self.clone(), owner, id)
    }

    /// Returns the sessions of the default owner.
    pub fn sessions(&self) -> Arc<dyn Sessions> {
        self.parts.place.sessions(&self.parts.owner)
    }

    /// Returns the place of the files and sessions.
    pub fn place(&self) -> &Arc<dyn Place> {
        &self.parts.place
    }

    /// Returns the default owner, to whom sessions belong for which no other is given.
    pub fn owner(&self) -> &Owner {
        &self.parts.owner
    }

    /// The workspace.
    pub fn workspace(&self) -> &Workspace {
        &self.parts.workspace
    }

    /// The model that answers.
    pub fn model(&self) -> &Arc<dyn Model> {
        &self.parts.model
    }

    /// Returns the tools of the embedding program and of the client. Features contribute the others
    /// turn by turn.
    pub fn tools(&self) -> &Registry {
        &self.tools
    }

    /// The hooks.
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

    /// The budget of work for `owner` outside any run: only the daily limit applies.
    pub fn budget(&self, owner: &Owner) -> Budget {
        Budget::outside_runs(&self.parts, owner)
    }

    /// The usage log of the owner's tenant.
    pub fn usage(&self, owner: &Owner) -> UsageLog {
        UsageLog::new(&self.parts, owner)
    }

    /// What calls of models beside the runs of sessions have cost in this process: those of memory
    /// and of hooks.
    pub fn side_spending(&self) -> SideTotal {
        self.parts.side_spending.total()
    }

    /// The changes that runs of a session made to files, and undo for them.
    pub fn undo(&self, owner: &Owner, session: &SessionId) -> UndoHistory {
        UndoHistory::new(&*self.parts.place, owner, session)
    }

    /// Removes data of `owner` that is no longer needed.
    pub fn collector(&self, owner: &Owner) -> GarbageCollector<'_> {
        GarbageCollector::new(&self.parts, owner)
    }

    /// Search in the memory and the sessions of `owner`.
    pub fn lookup(&self, owner: &Owner) -> Lookup {
        Lookup::new(
            self.parts.place.index(owner),
            self.parts.workspace.embedder.clone(),
        )
    }

    /// Readable copies of conversations, where the layout keeps them.
    pub fn archive(&self) -> ConversationArchive<'_> {
        ConversationArchive::new(&self.parts)
    }

    /// The other agents of the workspace.
    pub fn agents(&self) -> &WorkspaceAgents {
        &self.workspace_agents
    }

    /// The grants of `owner`.
    pub fn grants(&self, owner: &Owner) -> GrantStore {
        let place = &self.parts.place;
        // Who can write to a store was let in by its address and password.
        let keys = match place.kind() {
            PlaceKind::Local => self.parts.grant_keys.clone(),
            PlaceKind::Store => None,
        };
        GrantStore::new(place.state(owner), keys)
    }

    /// The seals of a session of `owner`.
    pub fn seals(&self, owner: &Owner, session: &SessionId) -> SessionSeals {
        let place = &self.parts.place;
        let key = match place.kind() {
            PlaceKind::Local => self.parts.person_key.clone(),
            PlaceKind::Store => None,
        };
        SessionSeals::new(key, place.state(owner).space, session.clone())
    }

    /// The questions that wait for a person in sessions of `owner`.
    pub fn open_questions(self: &Arc<Self>, owner: &Owner) -> OpenQuestions {
        OpenQuestions::new(self.clone(), owner.clone())
    }

    /// Long-term memory.
    pub fn memory(&self) -> Memory {
        Memory::new(Arc::new(AgentMemoryContext::new(self.parts.clone())))
    }

    /// Turn setups and tool calls of the default owner outside any session.
    pub fn sessionless(self: &Arc<Self>) -> Sessionless {
        Sessionless::new(self.clone(), self.parts.owner.clone())
    }
}
