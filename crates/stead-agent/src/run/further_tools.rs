//! What a model is told about tools that it is not shown.
//!
//! The description of `tool_search` says what kinds of tools there usually are, in the same words for
//! every session, because it is part of the prefix that providers cache. If the tools are other ones
//! than usual, or than in the run before, the model is told so at the end of the conversation.
//!
//! Effects: none.

use std::collections::BTreeSet;
use stead_core::{Notice, NoticeKind, RunId, SessionState};
use stead_tools::{Registry, builtin_tool, tool_group};

/// Returns the notice about the tools that are not shown; none if they are as usual, or as told
/// before. Its text is empty if there is nothing to tell, and only the list is recorded.
pub(super) fn changed_tools_notice(
    tools: &Registry,
    state: &SessionState,
    run: &RunId,
) -> Option<Notice> {
    let now: Vec<String> = tools.deferred().map(str::to_owned).collect();
    let is_known = match &state.told_tools {
        Some(told) => *told == now,
        None => now.is_empty() || now.iter().map(String::as_str).eq(usual_tools(tools)),
    };
    if is_known {
        return None;
    }
    // What was never there need not be told as missing.
    let is_untold = state.told_tools.is_none() && state.runs <= 1;
    let text = match now.is_empty() {
        _ if is_untold && now.iter().all(|name| is_usual(name)) => String::new(),
        true => "All tools are listed now; none is found with tool_search any more.".to_owned(),
        false => format!(
            "The tools that are found with tool_search and called with use_tool are now: {}.",
            now.join(", ")
        ),
    };
    Some(Notice {
        tools: Some(now),
        ..Notice::new(run.clone(), NoticeKind::Tools, text)
    })
}

/// Whether the name is that of a built-in tool or group.
fn is_usual(name: &str) -> bool {
    builtin_tool(name).is_some() || tool_group(name).is_some()
}

/// Returns the built-in tools and groups that are not shown where `tools` shows what it shows.
fn usual_tools(tools: &Registry) -> impl Iterator<Item = &'static str> {
    let names: BTreeSet<&str> = stead_tools::usually_deferred(tools.shown()).collect();
    names.into_iter()
}
