//! Answers on the wire of Anthropic Messages.
//!
//! Effects: test support.

use super::*;

impl CompleteReply<'_> {
    pub(super) fn messages(&self) -> Value {
        let block = |(piece, id): &(&FakeReplyPiece, String)| match piece {
            FakeReplyPiece::Text(text) => json!({"type": "text", "text": text}),
            FakeReplyPiece::Thinking(text) => {
                json!({"type": "thinking", "thinking": text, "signature": SIGNATURE})
            }
            FakeReplyPiece::Call { name, args, .. } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": object(args)})
            }
        };
        let content: Vec<Value> = self.pieces.iter().map(block).collect();
        let mut usage = self.messages_usage();
        usage["output_tokens"] = json!(self.usage.output_tokens);
        self.message(&content, Some(self.messages_stop()), &usage)
    }

    pub(super) fn messages_events(&self) -> String {
        let mut out = String::new();
        let mut send = |value: Value| {
            let name = value["type"]
                .as_str()
                .expect("every event has a type")
                .to_owned();
            event(&mut out, Some(&name), &value);
        };
        let mut usage = self.messages_usage();
        usage["output_tokens"] = json!(1);
        send(json!({"type": "message_start", "message": self.message(&[], None, &usage)}));
        send(json!({"type": "ping"}));
        for (index, (piece, id)) in self.pieces.iter().enumerate() {
            let start = |block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
            let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
            match piece {
                FakeReplyPiece::Text(text) => {
                    send(start(json!({"type": "text", "text": ""})));
                    words(text)
                        .for_each(|word| send(delta(json!({"type": "text_delta", "text": word}))));
                }
                FakeReplyPiece::Thinking(text) => {
                    send(start(
                        json!({"type": "thinking", "thinking": "", "signature": ""}),
                    ));
                    words(text).for_each(|word| {
                        send(delta(json!({"type": "thinking_delta", "thinking": word})))
                    });
                    send(delta(
                        json!({"type": "signature_delta", "signature": SIGNATURE}),
                    ));
                }
                FakeReplyPiece::Call { name, args, .. } => {
                    send(start(
                        json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                    ));
                    quarters(args).for_each(|part| {
                        send(delta(
                            json!({"type": "input_json_delta", "partial_json": part}),
                        ))
                    });
                }
            }
            send(json!({"type": "content_block_stop", "index": index}));
        }
        let end = json!({"stop_reason": self.messages_stop(), "stop_sequence": null});
        send(
            json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": self.usage.output_tokens}}),
        );
        send(json!({"type": "message_stop"}));
        out
    }

    fn message(&self, content: &[Value], stop: Option<&str>, usage: &Value) -> Value {
        json!({
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": content,
            "stop_reason": stop,
            "stop_sequence": null,
            "usage": usage,
        })
    }

    fn messages_stop(&self) -> &str {
        match &self.stop {
            StopReason::EndTurn | StopReason::CutOff => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Refusal | StopReason::ContentFilter => "refusal",
            StopReason::Other(reason) => reason,
        }
    }

    fn messages_usage(&self) -> Value {
        let Usage {
            input_tokens,
            cache_read_tokens,
            cache_write_tokens,
            ..
        } = self.usage;
        // This provider counts cached tokens separately.
        let uncached = input_tokens.saturating_sub(cache_read_tokens + cache_write_tokens);
        json!({
            "input_tokens": uncached,
            "cache_creation_input_tokens": cache_write_tokens,
            "cache_read_input_tokens": cache_read_tokens,
        })
    }
}
