//! The effect of a hook's answer. It depends only on what the hook declared and what the event
//! allows.
//!
//! Effects: none.

use super::answer::{HookAnswer, HookDecision, RequestPatch};
use serde_json::Value;
use stead_workspace::{Capability, HookEvent, HookSpec};

/// Text of a hook for the model.
#[derive(Debug, Clone)]
pub(crate) struct HookText {
    /// The name of the hook.
    pub(crate) hook: String,
    pub(crate) text: String,
}

/// The longest reason or message that is kept, in characters.
pub(super) const MAX_REASON_CHARS: usize = 2_000;
/// The longest text for the model, in characters.
const MAX_CONTEXT_CHARS: usize = 20_000;

/// A change that a hook makes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HookChange {
    /// Replaces the arguments of the call.
    ToolArgs(Value),
    /// Replaces the result of the call, as the model sees it.
    ToolResult(String),
    /// Replaces the text of the input.
    Prompt(String),
    /// Adds a text to the end of the system prompt of the next request.
    Context(String),
    /// Changes the next request.
    ModelRequest(RequestPatch),
    /// Replaces the text of the model's answer.
    ModelResponse(String),
}

/// The checked effect of an answer.
#[derive(Debug, PartialEq)]
pub(super) struct HookEffect {
    pub(super) vote: HookVote,
    pub(super) change: Option<HookChange>,
    /// The text for the model.
    pub(super) context: Option<String>,
    /// The message for people.
    pub(super) message: Option<String>,
    pub(super) suppress_output: bool,
}

/// The vote of one hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookVote {
    Abstain,
    /// The hook approves the call in place of a person.
    Approve,
    Block(String),
    /// The hook refuses, and asks for the end of the run.
    StopRun(String),
}

impl HookChange {
    fn capability(&self) -> Capability {
        match self {
            Self::ToolArgs(_) => Capability::RewriteToolRequest,
            Self::ToolResult(_) => Capability::RewriteToolResponse,
            Self::Prompt(_) | Self::Context(_) => Capability::RewriteContext,
            Self::ModelRequest(_) => Capability::RewriteModelRequest,
            Self::ModelResponse(_) => Capability::RewriteModelResponse,
        }
    }

    /// The events at which this change can be made.
    fn events(&self) -> &'static [HookEvent] {
        match self {
            Self::Prompt(_) => &[HookEvent::PromptSubmit],
            Self::Context(_) => &[HookEvent::BeforeContextBuild, HookEvent::AfterContextBuild],
            Self::ToolArgs(_)
            | Self::ToolResult(_)
            | Self::ModelRequest(_)
            | Self::ModelResponse(_) => self.capability().events(),
        }
    }

    /// The key of this change in a patch.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::ToolArgs(_) => "tool_args",
            Self::ToolResult(_) => "tool_result",
            Self::Prompt(_) => "prompt",
            Self::Context(_) => "context",
            Self::ModelRequest(_) => "model_request",
            Self::ModelResponse(_) => "model_response",
        }
    }
}

/// Returns the effect of `answer` at `event`, or why the answer is not accepted.
pub(super) fn resolve_effect(
    spec: &HookSpec,
    event: HookEvent,
    answer: HookAnswer,
) -> Result<HookEffect, String> {
    let vote = resolve_vote(spec, event, &answer)?;
    if answer.suppress_output {
        require(spec, Capability::SuppressOutput)?;
    }
    if answer.context.is_some() && !accepts_context(event) {
        return Err(format!(
            "`additional_context` reaches nobody at {}",
            event.as_str()
        ));
    }
    let change = resolve_change(spec, event, &answer)?;
    let cut =
        |text: &Option<String>, limit| text.as_deref().map(|text| truncate_chars(text, limit));
    Ok(HookEffect {
        vote,
        change,
        context: cut(&answer.context, MAX_CONTEXT_CHARS),
        message: cut(&answer.message, MAX_REASON_CHARS),
        suppress_output: answer.suppress_output,
    })
}

/// Returns the vote in an answer.
fn resolve_vote(
    spec: &HookSpec,
    event: HookEvent,
    answer: &HookAnswer,
) -> Result<HookVote, String> {
    let reason = || {
        let given = answer
            .reason
            .as_deref()
            .map(str::trim)
            .filter(|reason| !reason.is_empty());
        truncate_chars(given.unwrap_or("it gave no reason"), MAX_REASON_CHARS)
    };
    let refuses = answer.stops_run || answer.decision == Some(HookDecision::Block);
    if refuses && !event.can_be_blocked() {
        return Err(format!(
            "it said no, and {} cannot be blocked: {}",
            event.as_str(),
            reason()
        ));
    }
    Ok(match answer.decision {
        _ if answer.stops_run => HookVote::StopRun(reason()),
        Some(HookDecision::Block) => HookVote::Block(reason()),
        Some(HookDecision::Allow) if event == HookEvent::PermissionRequest => {
            require(spec, Capability::AnswerPermission)?;
            HookVote::Approve
        }
        // At other events an approval has no effect: a hook cannot allow anything.
        Some(HookDecision::Allow) | None => HookVote::Abstain,
    })
}

/// Returns the change that the patch of an answer asks for, if the event and the hook's
/// capabilities allow it.
fn resolve_change(
    spec: &HookSpec,
    event: HookEvent,
    answer: &HookAnswer,
) -> Result<Option<HookChange>, String> {
    let mut change = None;
    for requested in requested_changes(answer) {
        if !requested.events().contains(&event) {
            let events: Vec<&str> = requested
                .events()
                .iter()
                .map(|event| event.as_str())
                .collect();
            return Err(format!(
                "`patch.{}` is for {}, not for {}",
                requested.key(),
                events.join(", "),
                event.as_str()
            ));
        }
        require(spec, requested.capability())?;
        if matches!(&requested, HookChange::ToolArgs(args) if !args.is_object()) {
            return Err("`patch.tool_args` must be a JSON object".to_owned());
        }
        change = Some(requested);
    }
    Ok(change)
}

/// Checks that the hook declared a capability.
fn require(spec: &HookSpec, capability: Capability) -> Result<(), String> {
    match spec.capabilities.contains(&capability) {
        true => Ok(()),
        false => Err(format!(
            "it did not declare `capabilities: [{}]`, so nothing was changed",
            capability.as_str()
        )),
    }
}

/// Returns the changes that the patch of an answer asks for.
fn requested_changes(answer: &HookAnswer) -> Vec<HookChange> {
    let patch = answer.patch.clone();
    let all = [
        patch.tool_args.map(HookChange::ToolArgs),
        patch.tool_result.map(HookChange::ToolResult),
        patch.prompt.map(HookChange::Prompt),
        patch.context.map(HookChange::Context),
        patch.model_request.map(HookChange::ModelRequest),
        patch.model_response.map(HookChange::ModelResponse),
    ];
    all.into_iter().flatten().collect()
}

/// Whether text for the model can be added at `event`: never between a call and its result, nor
/// after the end.
fn accepts_context(event: HookEvent) -> bool {
    match event {
        HookEvent::SessionStart
        | HookEvent::PromptSubmit
        | HookEvent::RunStart
        | HookEvent::BeforeContextBuild
        | HookEvent::AfterContextBuild
        | HookEvent::BeforeModelCall
        | HookEvent::BeforeToolCall
        | HookEvent::AfterToolCall
        | HookEvent::AfterCompaction => true,
        HookEvent::AfterModelCall
        | HookEvent::PermissionRequest
        | HookEvent::BeforeCompaction
        | HookEvent::RunEnd
        | HookEvent::SessionEnd
        | HookEvent::Notification => false,
    }
}

/// Returns `text`, cut to `limit` characters.
pub(super) fn truncate_chars(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
