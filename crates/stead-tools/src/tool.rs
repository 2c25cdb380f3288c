//! The tool contract: `spec` says what a tool is, `plan` what a call would do, `call` does it.
//!
//! Effects: none.

use crate::{CallPlan, NestedCalls, Spill, SpillFactory, Surface};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{
    ActiveSkill, Block, PlanStage, SessionChange, SessionId, SkillActivation, TaintOrigin, Todo,
    ToolSpec,
};
use stead_vfs::{VPath, Version, Vfs};
use tokio_util::sync::CancellationToken;

/// Something an agent can do.
///
/// The registry checks a model's arguments against the spec, asks for the plan once, and keeps it:
/// the gate, the question to a person and the execution all use the same plan.
pub trait Tool: Send + Sync {
    /// Returns what the tool is: names, description, schema, kind and risk.
    fn spec(&self) -> &ToolSpec;

    /// Returns what a call with these arguments would do. The arguments fit the schema; they are
    /// parsed here and nowhere else.
    fn plan(&self, args: Value) -> Result<CallPlan, PlanError>;

    /// Carries the planned call out.
    fn call<'a>(
        &'a self,
        cx: &'a ToolCx,
        plan: CallPlan,
    ) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// Why there is no call to carry out. The message is for the model that asked for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// No tool has this name.
    #[error("{0}")]
    UnknownTool(String),
    /// The arguments do not fit the tool.
    #[error("{0}")]
    InvalidArguments(String),
}

/// What a call may use, and what limits it.
#[derive(Debug, Clone)]
pub struct ToolCx {
    /// The workspace's files.
    pub vfs: Arc<dyn Vfs>,
    /// The versions of files that this session has read or written.
    pub file_versions: Arc<FileVersions>,
    /// The skills that are part of the conversation.
    pub active_skills: Arc<ActiveSkills>,
    /// Cancelled when the run is cancelled or the call's time is up. Long work must watch it.
    pub cancel: CancellationToken,
    /// Where the call comes from.
    pub origin: CallOrigin,
    /// Makes the files that take long output.
    pub spills: SpillFactory,
    /// The state of the session that tools may see.
    pub session: SessionView,
    /// The surface the tool was called on: messages name other tools as the model knows them.
    pub surface: Surface,
    /// Calls other tools.
    pub calls: NestedCalls,
}

/// The state of a session that tools may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionView {
    /// The list of things to do.
    pub todos: Vec<Todo>,
    /// The plan that is being made or was agreed to.
    pub plan: Option<PlanStage>,
}

impl ToolCx {
    /// Returns a writer that takes output of any length while the call runs.
    pub fn spill(&self) -> Spill {
        self.spills.spill()
    }
}

/// Where a call comes from, for tools that record it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrigin {
    /// The session.
    pub session: SessionId,
    /// The sequence number of the journal entry before the call.
    pub seq: u64,
    /// The id of the call.
    pub call: String,
    /// The journal entry that first brought untrusted content into the session, if one did.
    pub tainted_by: Option<u64>,
}

impl Default for CallOrigin {
    /// The origin of a call outside any session.
    fn default() -> Self {
        Self {
            session: SessionId::sessionless(),
            seq: 0,
            call: String::new(),
            tainted_by: None,
        }
    }
}

/// The result of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// The content that the model is shown.
    pub content: Vec<Block>,
    /// The versions of files that the call read or wrote, which the session remembers.
    pub file_versions: BTreeMap<String, String>,
    /// The skill whose instructions the content is, if it is one.
    pub activates: Option<SkillActivation>,
    /// The origins of untrusted content in it, beside those that follow from the tool's spec and
    /// plan.
    pub taint: Vec<TaintOrigin>,
    /// A change of the session that takes effect with this result.
    pub change: Option<SessionChange>,
    /// The subagent tasks whose end the content reports.
    pub finished_tasks: Vec<String>,
    /// Whether the content reports a failure although the call itself succeeded.
    pub failed: bool,
    /// The exit code of the command that the call ran to its end.
    pub exit_code: Option<i32>,
}

impl Output {
    /// An output that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::text(text)],
            ..Self::default()
        }
    }

    /// Returns the output with further origins of untrusted content. With none nothing changes.
    pub fn tainted_by(mut self, origins: impl IntoIterator<Item = TaintOrigin>) -> Self {
        self.taint.extend(origins);
        self
    }

    /// Returns the output with a change of the session.
    pub fn with_change(self, change: SessionChange) -> Self {
        Self {
            change: Some(change),
            ..self
        }
    }

    /// Returns the output with a file version that the session remembers.
    pub fn with_file_version(mut self, path: &VPath, version: &Version) -> Self {
        self.file_versions
            .insert(path.as_str().to_owned(), version.to_string());
        self
    }
}

/// The two kinds of failure: one the model can act on, and one that only a person can.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The message becomes the call's result.
    #[error("{0}")]
    RespondToModel(String),
    /// The run ends with this message.
    #[error("{0}")]
    Fatal(String),
}

/// The file versions that a session knows, shared by its calls.
#[derive(Debug, Default)]
pub struct FileVersions(Mutex<BTreeMap<String, String>>);

impl FileVersions {
    /// Starts with what the journal recorded.
    pub fn new(known: BTreeMap<String, String>) -> Self {
        Self(Mutex::new(known))
    }

    /// Returns the version of `path` that this session knows.
    pub fn get(&self, path: &VPath) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path.as_str())
            .cloned()
    }

    /// Remembers the versions that a call saw.
    pub fn record(&self, seen: &BTreeMap<String, String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(
            seen.iter()
                .map(|(path, version)| (path.clone(), version.clone())),
        );
    }
}

/// The skills that are part of a session's conversation, by name and version, shared by its calls.
#[derive(Debug, Default)]
pub struct ActiveSkills(Mutex<BTreeMap<String, String>>);

impl ActiveSkills {
    /// Starts with what the journal recorded.
    pub fn new(skills: &BTreeMap<String, ActiveSkill>) -> Self {
        Self(Mutex::new(
            skills
                .iter()
                .map(|(name, skill)| (name.clone(), skill.version.clone()))
                .collect(),
        ))
    }

    /// Whether this version of `skill` is part of the conversation.
    pub fn has(&self, skill: &str, version: &str) -> bool {
        let active = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        active.get(skill).is_some_and(|known| known == version)
    }

    /// Remembers the skill that a call loaded.
    pub fn record(&self, activation: &SkillActivation) {
        let mut active = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        active.insert(activation.skill.clone(), activation.version.clone());
    }
}
