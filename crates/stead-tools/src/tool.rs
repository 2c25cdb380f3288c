//! The contract of a tool, on one screen.

use crate::{Spill, SpillFactory, TitleForm};
use futures_util::future::BoxFuture;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use stead_core::{
    ActiveSkill, Block, PathAccess, PlanStage, SessionChange, SessionId, SkillActivation, Todo,
    ToolSpec,
};
use stead_vfs::{VPath, Version, Vfs};
use tokio_util::sync::CancellationToken;

/// Something an agent can do.
pub trait Tool: Send + Sync {
    /// Name, description, schema and risk: what the model and the gate are told.
    fn spec(&self) -> &ToolSpec;

    /// The paths a call with these arguments would touch, for the gate. Arguments are valid here.
    fn accesses(&self, args: &Value) -> Vec<PathAccess>;

    /// Other names and values that arguments may come with, turned into those of the schema by
    /// [`Registry::prepare`](crate::Registry::prepare). The model is not told of them.
    fn argument_aliases(&self) -> ArgumentAliases {
        ArgumentAliases::default()
    }

    /// How it is shown where tools have titles, if differently.
    fn title_form(&self) -> Option<TitleForm> {
        None
    }

    /// How long its answers may be.
    fn output_length(&self) -> OutputLength {
        OutputLength::Any
    }

    /// The shell command that a call would run, for the gate. Arguments are valid here.
    fn command<'a>(&self, args: &'a Value) -> Option<&'a str> {
        let _ = args;
        None
    }

    /// How long a call may take, if not as long as any.
    fn timeout(&self, args: &Value) -> Option<Duration> {
        let _ = args;
        None
    }

    /// Why a person must agree to a call in every mode, if so.
    fn always_asks(&self, _args: &Value) -> Option<String> {
        None
    }

    /// Why a call makes no sense as the session stands, found out before a person is asked about
    /// it.
    fn refusal_reason<'a>(
        &'a self,
        _standing: &'a SessionView,
        _files: &'a dyn Vfs,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Who carries calls out.
    fn executor(&self) -> Executor {
        Executor::Harness
    }

    /// What a person agrees to beside the arguments. If it is another when the call is to run, they
    /// are asked again.
    fn approval_subject<'a>(&'a self, _files: &'a dyn Vfs) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// What a call would do, for the person who is asked about it: a diff, a command. Bounded; of
    /// `files` it shows only what the call itself names.
    fn preview<'a>(
        &'a self,
        _files: &'a dyn Vfs,
        args: &'a Value,
    ) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move { self.command(args).map(str::to_owned) })
    }

    /// Does it. Arguments have been validated against the schema.
    fn call<'a>(&'a self, cx: &'a ToolCx, args: Value) -> BoxFuture<'a, Result<Output, ToolError>>;
}

/// How long the answers of a tool may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputLength {
    /// As long as it comes: a long one goes to a file, and the model is shown its two ends.
    #[default]
    Any,
    /// Never too long, for the tool sees to it and says how to go on: it is always shown as it is.
    Bounded,
}

/// Who carries a call out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Executor {
    /// We do: [`Tool::call`].
    #[default]
    Harness,
    /// Whoever runs the agent does, and gives the result as the answer to a question.
    Client,
}

/// How else arguments may be spelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArgumentAliases {
    /// `(another name, the parameter)`.
    pub names: &'static [(&'static str, &'static str)],
    /// `(the parameter, another value, the value)`.
    pub values: &'static [(&'static str, &'static str, &'static str)],
}

/// What a call may use, and what bounds it.
#[derive(Debug, Clone)]
pub struct ToolCx {
    /// The workspace's files.
    pub vfs: Arc<dyn Vfs>,
    /// Versions of files this session has read or written.
    pub file_versions: Arc<FileVersions>,
    /// Skills that are part of the conversation.
    pub active_skills: Arc<ActiveSkills>,
    /// Fires when the run is cancelled or the call's time is up; long work must watch it.
    pub cancel: CancellationToken,
    /// Where in which conversation the call stands.
    pub origin: CallOrigin,
    /// Where output goes that is too long to be held.
    pub spills: SpillFactory,
    /// How the session stands.
    pub session: SessionView,
}

/// How a session stands, as far as tools must know it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionView {
    /// Things to do.
    pub todos: Vec<Todo>,
    /// The plan that is being made or was agreed to.
    pub plan: Option<PlanStage>,
}

impl ToolCx {
    /// Takes output of any length while the call runs.
    pub fn spill(&self) -> Spill {
        self.spills.spill()
    }
}

/// Where a call comes from, for tools that note it down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOrigin {
    /// The session.
    pub session: SessionId,
    /// The entry of its journal before the call.
    pub seq: u64,
    /// The call.
    pub call: String,
    /// The result that first brought in words that nobody here vouches for, if one did.
    pub tainted_by: Option<u64>,
}

impl Default for CallOrigin {
    /// Outside any session.
    fn default() -> Self {
        Self {
            session: SessionId::sessionless(),
            seq: 0,
            call: String::new(),
            tainted_by: None,
        }
    }
}

/// What a call gives back.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// For the model.
    pub content: Vec<Block>,
    /// Versions of files read or written, to be remembered by the session.
    pub file_versions: BTreeMap<String, String>,
    /// The skill whose body this is.
    pub activates: Option<SkillActivation>,
    /// Whether it holds words of people or machines that nobody here vouches for, whatever the
    /// tool's risk says.
    pub untrusted: bool,
    /// How the session goes on after it.
    pub change: Option<SessionChange>,
    /// Tasks of subagents whose end it tells.
    pub finished_tasks: Vec<String>,
    /// Whether it tells of a failure, though it was the tool that found it and not the call that
    /// failed.
    pub failed: bool,
}

impl Output {
    /// One text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![Block::text(text)],
            ..Self::default()
        }
    }

    /// The same output, which holds words that nobody here vouches for if `found` does.
    pub fn untrusted_if(self, found: bool) -> Self {
        Self {
            untrusted: self.untrusted || found,
            ..self
        }
    }

    /// The same output, after which the session goes on differently.
    pub fn with_change(self, change: SessionChange) -> Self {
        Self {
            change: Some(change),
            ..self
        }
    }

    /// The same output, and the session now knows `version` of `path`.
    pub fn with_file_version(mut self, path: &VPath, version: &Version) -> Self {
        self.file_versions
            .insert(path.as_str().to_owned(), version.to_string());
        self
    }
}

/// The two kinds of failure: the model can act on the first, nobody but a person on the second.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// Told to the model as the call's result.
    #[error("{0}")]
    RespondToModel(String),
    /// Ends the run.
    #[error("{0}")]
    Fatal(String),
}

/// File versions a session knows, shared by its calls.
#[derive(Debug, Default)]
pub struct FileVersions(Mutex<BTreeMap<String, String>>);

impl FileVersions {
    /// Starts from what the journal says.
    pub fn new(known: BTreeMap<String, String>) -> Self {
        Self(Mutex::new(known))
    }

    /// The version of `path` this session knows.
    pub fn get(&self, path: &VPath) -> Option<String> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path.as_str())
            .cloned()
    }

    /// Remembers what a call saw.
    pub fn record(&self, seen: &BTreeMap<String, String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.extend(
            seen.iter()
                .map(|(path, version)| (path.clone(), version.clone())),
        );
    }
}

/// The skills that are part of a session's conversation, shared by its calls: name to version.
#[derive(Debug, Default)]
pub struct ActiveSkills(Mutex<BTreeMap<String, String>>);

impl ActiveSkills {
    /// Starts from what the journal says.
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

    /// Remembers what a call brought in.
    pub fn record(&self, activation: &SkillActivation) {
        let mut active = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        active.insert(activation.skill.clone(), activation.version.clone());
    }
}
