//! Answers on the wire of Chat Completions.
//!
//! Effects: test support.

use super::*;

impl CompleteReply<'_> {
    pub(super) fn chat(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.texts()});
        if let Some(thoughts) = self.thoughts() {
            message["reasoning_content"] = json!(thoughts);
        }
        let call = |(piece, id): &(&FakeReplyPiece, String)| match piece {
            FakeReplyPiece::Call { name, args, .. } => Some(
                json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}}),
            ),
            FakeReplyPiece::Text(_) | FakeReplyPiece::Thinking(_) => None,
        };
        let calls: Vec<Value> = self.pieces.iter().filter_map(call).collect();
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.chat_stop(), "logprobs": null});
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": CREATED,
            "model": MODEL,
            "choices": [choice],
            "usage": self.chat_usage(),
        })
    }

    pub(super) fn chat_events(&self, usage: Option<&Value>) -> String {
        let mut out = String::new();
        let mut chunk = |delta: Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            event(&mut out, None, &self.chat_chunk(&[choice]));
        };
        chunk(json!({"role": "assistant", "content": ""}), None);
        let mut index = 0;
        for (piece, id) in &self.pieces {
            match piece {
                FakeReplyPiece::Text(text) => {
                    words(text).for_each(|word| chunk(json!({"content": word}), None))
                }
                FakeReplyPiece::Thinking(text) => {
                    words(text).for_each(|word| chunk(json!({"reasoning_content": word}), None))
                }
                FakeReplyPiece::Call { name, args, .. } => {
                    let function = json!({"name": name, "arguments": ""});
                    let start =
                        json!({"index": index, "id": id, "type": "function", "function": function});
                    chunk(json!({"tool_calls": [start]}), None);
                    for part in quarters(args) {
                        let more = json!({"index": index, "function": {"arguments": part}});
                        chunk(json!({"tool_calls": [more]}), None);
                    }
                    index += 1;
                }
            }
        }
        chunk(json!({}), Some(self.chat_stop()));
        if let Some(usage) = usage {
            event(
                &mut out,
                None,
                &with(&self.chat_chunk(&[]), "usage", usage.clone()),
            );
        }
        out + "data: [DONE]\n\n"
    }

    fn chat_chunk(&self, choices: &[Value]) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": MODEL,
            "choices": choices,
        })
    }

    fn chat_stop(&self) -> &str {
        match &self.stop {
            StopReason::EndTurn
            | StopReason::CutOff
            | StopReason::StopSequence
            | StopReason::Refusal => "stop",
            StopReason::ToolUse => "tool_calls",
            StopReason::MaxTokens => "length",
            StopReason::ContentFilter => "content_filter",
            StopReason::Other(reason) => reason,
        }
    }

    pub(super) fn chat_usage(&self) -> Value {
        let Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            reasoning_tokens,
            ..
        } = self.usage;
        json!({
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
            "prompt_tokens_details": {"cached_tokens": cache_read_tokens},
            "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
        })
    }
}
