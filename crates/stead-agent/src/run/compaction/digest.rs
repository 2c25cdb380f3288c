//! The digest: a summary of older messages that is made without a model. It has less information
//! than the summary of a model, but no mistakes.
//!
//! Effects: none.

use super::transcript::truncate_middle;
use std::collections::BTreeSet;
use stead_core::{Message, ToolKind, TurnMessage};
use stead_tools::builtin_tool;

/// The most inputs of the person that are quoted, and the most bytes of each.
const MAX_INPUTS: usize = 20;
const MAX_INPUT_BYTES: usize = 400;
/// The most files that are named.
const MAX_FILES: usize = 60;
/// The most bytes of an earlier summary, and of the newest answer.
const MAX_EARLIER_SUMMARY_BYTES: usize = 6_000;
const MAX_ANSWER_BYTES: usize = 1_000;

/// Returns a digest of `covered`, after the earlier summary.
pub(super) fn digest(covered: &[TurnMessage], earlier: Option<&str>) -> String {
    let mut text = String::new();
    if let Some(earlier) = earlier {
        text.push_str(&format!(
            "{}\n\n",
            truncate_middle(earlier, MAX_EARLIER_SUMMARY_BYTES)
        ));
    }
    let inputs: Vec<&TurnMessage> = covered.iter().filter(|turn| turn.is_user_input()).collect();
    let newest = &inputs[inputs.len().saturating_sub(MAX_INPUTS)..];
    if !newest.is_empty() {
        text.push_str("## Intent\nThe person said:\n");
        newest
            .iter()
            .for_each(|turn| text.push_str(&format!("- {}\n", one_line(&turn.message.text()))));
    }
    let calls = covered
        .iter()
        .map(|turn| turn.message.calls().count())
        .sum::<usize>();
    text.push_str(&format!(
        "## State\n{} messages with {calls} calls of tools are not shown.",
        covered.len()
    ));
    let is_answer = |turn: &&TurnMessage| {
        matches!(&*turn.message, Message::Assistant { .. }) && !turn.message.text().is_empty()
    };
    if let Some(answer) = covered.iter().rev().find(is_answer) {
        text.push_str(&format!(
            " The newest words of the agent among them:\n{}",
            truncate_middle(&answer.message.text(), MAX_ANSWER_BYTES)
        ));
    }
    text.push('\n');
    let files = changed_files(covered);
    if !files.is_empty() {
        text.push_str("## Files touched\n");
        files
            .iter()
            .for_each(|file| text.push_str(&format!("- {file}\n")));
    }
    text.push_str(
        "## Next steps\nGo on with the task; look up with `recall` what is missing here.",
    );
    text
}

/// Returns the files that calls of file tools changed, newest last, each once. The catalogue of
/// built-in tools is asked, for the journal may be older than the current tools.
pub(super) fn changed_files(turns: &[TurnMessage]) -> Vec<String> {
    let calls = turns
        .iter()
        .rev()
        .flat_map(|turn| turn.message.calls().collect::<Vec<_>>());
    let paths = calls.flat_map(|call| {
        let tool = builtin_tool(&call.name).filter(|tool| tool.kind == ToolKind::FileWrite);
        let arguments = tool.map_or(&[][..], |tool| tool.subject_arguments);
        arguments
            .iter()
            .filter_map(|name| call.args.get(name)?.as_str())
    });
    let mut known = BTreeSet::new();
    let mut files: Vec<String> = paths
        .filter(|path| known.insert(path.to_string()))
        .map(str::to_owned)
        .collect();
    files.truncate(MAX_FILES);
    files.reverse();
    files
}

/// Returns the beginning and end of an input as one line.
fn one_line(text: &str) -> String {
    truncate_middle(text, MAX_INPUT_BYTES)
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
