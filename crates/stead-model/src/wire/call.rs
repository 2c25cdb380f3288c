//! Completing a tool call at the end of an answer.
//!
//! Effects: none.

use super::args::parse_args;
use stead_core::{StopReason, ToolCall};

/// Returns the call with the arguments `text`. An answer that was cut by its output limit may have
/// been about to write arguments, so empty text does not mean no arguments there.
pub(super) fn finish_call(id: String, name: String, text: &str, stop: &StopReason) -> ToolCall {
    let cut = *stop == StopReason::MaxTokens;
    let (args, invalid) = parse_args(text);
    let invalid = match invalid {
        _ if name.is_empty() => Some("the call names no tool".to_owned()),
        None if cut && text.trim().is_empty() => Some(CUT.to_owned()),
        Some(reason) if cut => Some(format!("{reason}. {CUT}")),
        invalid => invalid,
    };
    ToolCall {
        id,
        name,
        args,
        invalid,
        signature: None,
    }
}

const CUT: &str = "The answer reached its output limit before the call was complete, so nothing was done. Make \
    the call again with less at once: write a long text in several calls, the first with its beginning, each further \
    one appending a part";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_cut_by_the_output_limit_is_never_taken_for_a_whole_one() {
        let invalid = |name: &str, text, stop| {
            finish_call("1".into(), name.into(), text, &stop)
                .invalid
                .is_some()
        };
        assert!(!invalid("ls", "", StopReason::ToolUse));
        assert!(!invalid("ls", "{}", StopReason::MaxTokens));
        assert!(invalid("ls", "", StopReason::MaxTokens));
        assert!(invalid("ls", r#"{"a":"#, StopReason::MaxTokens));
        assert!(invalid("ls", r#"{"a":"#, StopReason::ToolUse));
        assert!(invalid("", "{}", StopReason::ToolUse));
    }

    #[test]
    fn arguments_are_kept() {
        let want = ToolCall {
            id: "1".into(),
            name: "ls".into(),
            args: json!({"path": "."}),
            invalid: None,
            signature: None,
        };
        assert_eq!(
            finish_call(
                "1".into(),
                "ls".into(),
                r#"{"path":"."}"#,
                &StopReason::EndTurn
            ),
            want
        );
    }
}
