//! The definition of a hook, the same for every layout.
//!
//! Effects: none.

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
    /// The hook's name, which is unique in the workspace.
    pub name: String,
    /// The file that defines the hook.
    pub source: String,
    /// The files of the folder that decide what the hook does: scripts that its command names, the
    /// file of its prompt or task. The agent cannot change them.
    pub files: Vec<VPath>,
    /// The events that trigger the hook.
    pub events: Vec<HookTrigger>,
    /// The pattern that selects occasions; none = all.
    pub matcher: Option<Matcher>,
    /// The handler that answers.
    pub handler: Handler,
    /// What the hook may do in addition to blocking and adding context.
    pub capabilities: BTreeSet<Capability>,
    /// The time limit.
    pub timeout: Duration,
    /// What happens if the hook gives no valid answer; none = the default of the event.
    pub on_failure: Option<OnFailure>,
}

/// The handler of a hook.
#[derive(Debug, Clone, PartialEq)]
pub enum Handler {
    /// A program on this machine, with the event on standard input and the answer on standard
    /// output.
    Command {
        /// The program.
        program: Program,
        /// The folder of the workspace in which the program runs.
        cwd: VPath,
        /// The environment, in addition to the few variables that every hook has.
        env: BTreeMap<String, String>,
    },
    /// An HTTP endpoint, with the event as the request body and the answer as the response body.
    Http {
        /// The URL.
        url: String,
        /// The request method.
        method: HttpMethod,
        /// The headers, in addition to those for JSON.
        headers: BTreeMap<String, String>,
    },
    /// A model, with the event as its input.
    Prompt {
        /// The instructions for the model.
        prompt: String,
        /// The model; none = the agent's own.
        model: Option<Box<ModelSettings>>,
    },
    /// An agent of the workspace.
    Agent {
        /// The agent's name.
        agent: String,
        /// The agent's task.
        task: String,
    },
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A command line for `sh`.
    Shell(String),
    /// A program with its arguments, without a shell.
    Direct {
        /// The program.
        program: String,
        /// The arguments.
        args: Vec<String>,
    },
}

/// The method of an HTTP request.
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
    /// Returns the method as HTTP writes it.
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

/// An action that a hook may take only if it declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Change the input before it is recorded, and add to the messages for the model.
    RewriteContext,
    /// Change the model request.
    RewriteModelRequest,
    /// Change the text of the model's answer.
    RewriteModelResponse,
    /// Change the arguments of a tool call.
    RewriteToolRequest,
    /// Change the result of a tool call.
    RewriteToolResponse,
    /// Hide output from people.
    SuppressOutput,
    /// Approve calls in place of a person.
    AnswerPermission,
}

impl Capability {
    /// Returns the name in files.
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

    /// Returns the events at which the capability has a meaning.
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

/// What happens if a hook gives no valid answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The run continues, and the failure is reported.
    Open,
    /// The failure counts as a refusal.
    Closed,
}

impl HookSpec {
    /// Whether the hook is asked about `event`. `subjects` are the names that the matcher is
    /// applied to; `outcome` is the outcome of the run at its end.
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

    /// Returns what happens at `event` if the hook gives no valid answer.
    pub fn failure_policy(&self, event: HookEvent) -> OnFailure {
        match self.on_failure {
            Some(set) => set,
            None if event.fails_closed() => OnFailure::Closed,
            None => OnFailure::Open,
        }
    }
}
