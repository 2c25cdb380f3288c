//! What an answer comes to: decided from what the hook declared and what the event allows, and
//! nothing else.

use super::answer::{HookAnswer, HookDecision, RequestPatch};
use serde_json::Value;
use stead_workspace::{Capability, HookEvent, HookSpec};

/// Longest reason or word to people that is kept, in characters.
pub(super) const MAX_REASON_CHARS: usize = 2_000;
/// Longest text for the model, in characters.
const MAX_CONTEXT_CHARS: usize = 20_000;

/// What a hook changes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HookChange {
    /// The arguments of the call.
    ToolArgs(Value),
    /// What the model is told of its result.
    ToolResult(String),
    /// What the person said.
    Prompt(String),
    /// What is said last in the system prompt of the next request.
    Context(String),
    /// How the model is asked.
    ModelRequest(RequestPatch),
    /// The words of its answer.
    ModelResponse(String),
}

/// What an answer comes to.
#[derive(Debug, PartialEq)]
pub(super) struct HookEffect {
    pub(super) vote: HookVote,
    pub(super) change: Option<HookChange>,
    /// For the model.
    pub(super) context: Option<String>,
    /// For people.
    pub(super) message: Option<String>,
    pub(super) suppress_output: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HookVote {
    Abstain,
    /// Yes, in the place of a person.
    Approve,
    Block(String),
    /// No, and the run is to end.
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

    /// The events at which it can be made.
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

    /// Its key in a patch.
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

/// What `answer` comes to at `event`, or why it does not count.
pub(super) fn resolve_effect(
    spec: &HookSpec,
    event: HookEvent,
    answer: HookAnswer,
) -> Result<HookEffect, String> {
    let needs = |capability: Capability| match spec.capabilities.contains(&capability) {
        true => Ok(()),
        false => Err(format!(
            "it did not declare `capabilities: [{}]`, so nothing was changed",
            capability.as_str()
        )),
    };
    let reason = || {
        let given = answer
            .reason
            .as_deref()
            .map(str::trim)
            .filter(|reason| !reason.is_empty());
        truncate_chars(given.unwrap_or("it gave no reason"), MAX_REASON_CHARS)
    };
    let at = event.as_str();
    let no = answer.stops_run || answer.decision == Some(HookDecision::Block);
    if no && !event.can_be_blocked() {
        return Err(format!(
            "it said no, and {at} cannot be blocked: {}",
            reason()
        ));
    }
    let says = match answer.decision {
        _ if answer.stops_run => HookVote::StopRun(reason()),
        Some(HookDecision::Block) => HookVote::Block(reason()),
        Some(HookDecision::Allow) if event == HookEvent::PermissionRequest => {
            needs(Capability::AnswerPermission)?;
            HookVote::Approve
        }
        // Elsewhere it widens nothing.
        Some(HookDecision::Allow) | None => HookVote::Abstain,
    };
    if answer.suppress_output {
        needs(Capability::SuppressOutput)?;
    }
    if answer.context.is_some() && !accepts_context(event) {
        return Err(format!("`additional_context` reaches nobody at {at}"));
    }
    let mut change = None;
    for wanted in requested_changes(&answer) {
        if !wanted.events().contains(&event) {
            let events: Vec<&str> = wanted.events().iter().map(|event| event.as_str()).collect();
            return Err(format!(
                "`patch.{}` is for {}, not for {at}",
                wanted.key(),
                events.join(", ")
            ));
        }
        needs(wanted.capability())?;
        if matches!(&wanted, HookChange::ToolArgs(args) if !args.is_object()) {
            return Err("`patch.tool_args` is no JSON object".to_owned());
        }
        change = Some(wanted);
    }
    Ok(HookEffect {
        vote: says,
        change,
        context: answer
            .context
            .as_deref()
            .map(|text| truncate_chars(text, MAX_CONTEXT_CHARS)),
        message: answer
            .message
            .as_deref()
            .map(|text| truncate_chars(text, MAX_REASON_CHARS)),
        suppress_output: answer.suppress_output,
    })
}

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

/// Whether words for the model can be added there: never between a call and its result, nor after
/// the end.
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

/// At most so many characters of a text.
pub(super) fn truncate_chars(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
