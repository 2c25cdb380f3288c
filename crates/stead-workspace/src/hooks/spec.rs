//! A hook as it is asked, whichever layout defined it.

use super::{HookEvent, HookTrigger, Matcher, RunEndFilter};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use stead_core::RunOutcome;
use stead_model::ModelSettings;
use stead_vfs::VPath;

/// A hook.
#[derive(Debug, Clone, PartialEq)]
pub struct HookSpec {
    /// Its name, which no other hook has.
    pub name: String,
    /// The file it was read from.
    pub source: String,
    /// What it is asked about.
    pub events: Vec<HookTrigger>,
    /// Which occasions of them; none = all.
    pub matcher: Option<Matcher>,
    /// Who is asked.
    pub handler: Handler,
    /// What it may do beside saying no and adding words.
    pub capabilities: BTreeSet<Capability>,
    /// How long it may take.
    pub timeout: Duration,
    /// What happens if it gives no answer; none = as the event has it.
    pub on_failure: Option<OnFailure>,
}

/// Who is asked.
#[derive(Debug, Clone, PartialEq)]
pub enum Handler {
    /// A program of this machine: what happened on its standard input, its answer on its standard
    /// output.
    Command {
        /// The program.
        program: Program,
        /// The folder of the workspace it is run in.
        cwd: VPath,
        /// Its environment, beside the few variables that every hook has.
        env: BTreeMap<String, String>,
    },
    /// An address: what happened as the body of a request, the answer as that of a response.
    Http {
        /// The address.
        url: String,
        /// How it is asked.
        method: HttpMethod,
        /// Headers, beside those that say that it is JSON.
        headers: BTreeMap<String, String>,
    },
    /// A model: what happened as its input, its answer as it is.
    Prompt {
        /// What it is told to look for.
        prompt: String,
        /// The model; none = the agent's own.
        model: Option<Box<ModelSettings>>,
    },
    /// An agent of the workspace.
    Agent {
        /// Its name.
        agent: String,
        /// What it is to do.
        task: String,
    },
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A line for `sh`.
    Shell(String),
    /// A program with its arguments, as they are.
    Direct {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// How an address is asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
#[expect(missing_docs, reason = "they are HTTP's own")]
pub enum HttpMethod {
    Get,
    #[default]
    Post,
    Put,
    Patch,
    Delete,
}

impl HttpMethod {
    /// As HTTP writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// What a hook may do only if it declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Change the prompt before it is on record, and add to what the model is sent.
    RewriteContext,
    /// Change how the model is asked.
    RewriteModelRequest,
    /// Change the words of its answer.
    RewriteModelResponse,
    /// Change the arguments of a call.
    RewriteToolRequest,
    /// Change the result of a call.
    RewriteToolResponse,
    /// Keep from people what they would be shown.
    SuppressOutput,
    /// Say yes where a person would be asked.
    AnswerPermission,
}

impl Capability {
    /// Its name in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RewriteContext => "rewrite_context",
            Self::RewriteModelRequest => "rewrite_model_request",
            Self::RewriteModelResponse => "rewrite_model_response",
            Self::RewriteToolRequest => "rewrite_tool_request",
            Self::RewriteToolResponse => "rewrite_tool_response",
            Self::SuppressOutput => "suppress_output",
            Self::AnswerPermission => "answer_permission",
        }
    }

    /// The events at which it means something.
    pub fn events(self) -> &'static [HookEvent] {
        match self {
            Self::RewriteContext => &[
                HookEvent::PromptSubmit,
                HookEvent::BeforeContextBuild,
                HookEvent::AfterContextBuild,
            ],
            Self::RewriteModelRequest => &[HookEvent::BeforeModelCall],
            Self::RewriteModelResponse => &[HookEvent::AfterModelCall],
            Self::RewriteToolRequest => &[HookEvent::BeforeToolCall],
            Self::RewriteToolResponse => &[HookEvent::AfterToolCall],
            Self::SuppressOutput => &HookEvent::ALL,
            Self::AnswerPermission => &[HookEvent::PermissionRequest],
        }
    }
}

/// What happens if a hook gives no answer that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// Things go on, and it is told.
    Open,
    /// It counts as a no.
    Closed,
}

impl HookSpec {
    /// Whether it is asked about `event`, at an occasion that `subjects` are the names of;
    /// `outcome` is how a run ended, where it did.
    pub fn matches(
        &self,
        event: HookEvent,
        subjects: &[&str],
        outcome: Option<RunOutcome>,
    ) -> bool {
        let covers = |ended: RunEndFilter| outcome.is_none_or(|outcome| ended.covers(outcome));
        let on = self
            .events
            .iter()
            .any(|on| on.event == event && covers(on.run_end));
        on && self
            .matcher
            .as_ref()
            .is_none_or(|matcher| subjects.iter().any(|subject| matcher.matches(subject)))
    }

    /// What happens at `event` if it gives no answer.
    pub fn failure_policy(&self, event: HookEvent) -> OnFailure {
        match self.on_failure {
            Some(set) => set,
            None if event.fails_closed() => OnFailure::Closed,
            None => OnFailure::Open,
        }
    }
}
