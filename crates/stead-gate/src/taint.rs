//! What a tainted session must ask about: calls by which untrusted content could do harm that
//! outlasts the session or leaves the machine.
//!
//! Effects: none.

use super::CallFacts;
use stead_core::{RuleId, RuleSource, TaintOrigins, ToolEffect, ToolKind, Verdict};
use stead_sandbox::Isolation;

/// How the names of the tools of tool servers begin.
const SERVER_TOOLS: &str = "mcp__";

/// What a tainted session has taken in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTaint {
    /// The number of the entry that first brought in untrusted content.
    pub seq: u64,
    /// The origins of that content.
    pub origins: TaintOrigins,
}

/// What a call would do with content that nobody vouched for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaintSink<'a> {
    /// It would change a file from which later prompts are made.
    PromptSource(&'a str),
    /// It would reach other machines.
    Network,
    /// It would make a tool server do something.
    Server,
    /// It would send a message to people outside the conversation.
    Message,
    /// It would run on the host, although commands have a sandbox.
    Host,
}

impl TaintSink<'_> {
    /// Whether "always" may answer it. What changes later prompts, speaks to people or leaves the
    /// walls is seen by a person each time.
    pub(super) fn can_be_granted(&self) -> bool {
        match self {
            Self::Network | Self::Server => true,
            Self::PromptSource(_) | Self::Message | Self::Host => false,
        }
    }

    fn verdict(&self, tool: &str, taint: &SessionTaint) -> Verdict {
        let rule = |text: String| RuleId::new(RuleSource::Taint, text);
        let (rule, why) = match self {
            Self::PromptSource(path) => (
                rule((*path).to_owned()),
                format!("{path:?} is part of later prompts"),
            ),
            Self::Network => (
                rule(format!("network {tool}")),
                format!("{tool} would reach other machines"),
            ),
            Self::Server => (
                rule(format!("server {tool}")),
                format!("{tool} would make a tool server do more than read"),
            ),
            Self::Message => (
                rule(format!("message {tool}")),
                format!("{tool} would send a message to others"),
            ),
            Self::Host => (
                rule(format!("host {tool}")),
                format!("{tool} would run outside the sandbox"),
            ),
        };
        let SessionTaint { seq, origins } = taint;
        Verdict::ask(
            rule,
            format!("tainted: entry {seq} brought in untrusted content from {origins}, and {why}"),
        )
    }
}

/// Returns the sinks of a call; none in a session that is not tainted.
pub(super) fn sinks(call: &CallFacts) -> Vec<TaintSink<'_>> {
    if call.taint.is_none() {
        return Vec::new();
    }
    let is_server = call.tool.starts_with(SERVER_TOOLS);
    let runs_command = call.command.is_some() || call.effect == ToolEffect::Executes;
    let isolation = call
        .command
        .as_ref()
        .map_or(Isolation::NONE, |command| command.isolation);
    let is_network_command = call
        .command
        .as_ref()
        .is_some_and(|command| command.network && !command.isolation.network.is_blocked());
    let leaves_sandbox = runs_command && isolation.is_none() && !call.isolation.is_none();
    let is_network = call.effect == ToolEffect::Network && !is_server;
    [
        call.prompt_source.as_deref().map(TaintSink::PromptSource),
        (is_network || is_network_command).then_some(TaintSink::Network),
        (is_server && call.effect != ToolEffect::Reads).then_some(TaintSink::Server),
        (call.kind == ToolKind::Message).then_some(TaintSink::Message),
        leaves_sandbox.then_some(TaintSink::Host),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the verdicts on the sinks of a call.
pub(super) fn verdicts(call: &CallFacts, sinks: &[TaintSink<'_>]) -> Vec<Verdict> {
    let taint = call.taint.iter();
    taint
        .flat_map(|taint| sinks.iter().map(|sink| sink.verdict(&call.tool, taint)))
        .collect()
}
