//! Answers on the wire of OpenAI Responses.
//!
//! Effects: test support.

use super::*;

impl CompleteReply<'_> {
    pub(super) fn responses(&self) -> Value {
        let output: Vec<Value> = self.pieces.iter().map(responses_item).collect();
        self.responses_object(self.responses_status(), &output)
    }

    fn responses_status(&self) -> &'static str {
        match &self.stop {
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::CutOff
            | StopReason::Refusal => "completed",
            StopReason::MaxTokens | StopReason::ContentFilter | StopReason::Other(_) => {
                "incomplete"
            }
        }
    }

    fn responses_object(&self, status: &str, output: &[Value]) -> Value {
        let reason = match &self.stop {
            StopReason::MaxTokens => Some("max_output_tokens"),
            StopReason::ContentFilter => Some("content_filter"),
            StopReason::Other(reason) => Some(reason.as_str()),
            StopReason::EndTurn
            | StopReason::ToolUse
            | StopReason::StopSequence
            | StopReason::CutOff
            | StopReason::Refusal => None,
        };
        let details = (status == "incomplete").then(|| json!({"reason": reason}));
        let Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens,
            reasoning_tokens,
            ..
        } = self.usage;
        let usage = (status != "in_progress").then(|| {
            json!({
                "input_tokens": input_tokens,
                "input_tokens_details": {"cached_tokens": cache_read_tokens},
                "output_tokens": output_tokens,
                "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
                "total_tokens": input_tokens + output_tokens,
            })
        });
        json!({
            "id": self.id,
            "object": "response",
            "created_at": CREATED,
            "model": MODEL,
            "status": status,
            "incomplete_details": details,
            "error": null,
            "output": output,
            "usage": usage,
        })
    }

    pub(super) fn responses_events(&self) -> String {
        let mut out = String::new();
        let mut sequence = 0;
        let mut send = |kind: &str, mut value: Value| {
            value["type"] = json!(kind);
            value["sequence_number"] = json!(sequence);
            sequence += 1;
            event(&mut out, Some(kind), &value);
        };
        let begun = self.responses_object("in_progress", &[]);
        send("response.created", json!({"response": begun}));
        send("response.in_progress", json!({"response": begun}));
        for (at, (piece, id)) in self.pieces.iter().enumerate() {
            let item = responses_item(&(*piece, id.clone()));
            let mut opened = item.clone();
            opened["status"] = json!("in_progress");
            match piece {
                FakeReplyPiece::Text(text) => {
                    let place = json!({"item_id": id, "output_index": at, "content_index": 0});
                    opened["content"] = json!([]);
                    send(
                        "response.output_item.added",
                        json!({"output_index": at, "item": opened}),
                    );
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    send("response.content_part.added", with(&place, "part", part));
                    words(text).for_each(|word| {
                        send(
                            "response.output_text.delta",
                            with(&place, "delta", json!(word)),
                        )
                    });
                    send(
                        "response.output_text.done",
                        with(&place, "text", json!(text)),
                    );
                    send(
                        "response.content_part.done",
                        with(&place, "part", item["content"][0].clone()),
                    );
                }
                FakeReplyPiece::Thinking(text) => {
                    let place = json!({"item_id": id, "output_index": at, "summary_index": 0});
                    opened["summary"] = json!([]);
                    send(
                        "response.output_item.added",
                        json!({"output_index": at, "item": opened}),
                    );
                    let part = json!({"type": "summary_text", "text": ""});
                    send(
                        "response.reasoning_summary_part.added",
                        with(&place, "part", part),
                    );
                    words(text).for_each(|word| {
                        send(
                            "response.reasoning_summary_text.delta",
                            with(&place, "delta", json!(word)),
                        );
                    });
                    send(
                        "response.reasoning_summary_text.done",
                        with(&place, "text", json!(text)),
                    );
                    send(
                        "response.reasoning_summary_part.done",
                        with(&place, "part", item["summary"][0].clone()),
                    );
                }
                FakeReplyPiece::Call { args, .. } => {
                    let place = json!({"item_id": format!("fc_{id}"), "output_index": at});
                    opened["arguments"] = json!("");
                    send(
                        "response.output_item.added",
                        json!({"output_index": at, "item": opened}),
                    );
                    for part in quarters(args) {
                        send(
                            "response.function_call_arguments.delta",
                            with(&place, "delta", json!(part)),
                        );
                    }
                    send(
                        "response.function_call_arguments.done",
                        with(&place, "arguments", json!(args)),
                    );
                }
            }
            send(
                "response.output_item.done",
                json!({"output_index": at, "item": item}),
            );
        }
        let whole = self.responses();
        send(
            &format!("response.{}", self.responses_status()),
            json!({"response": whole}),
        );
        out
    }
}

fn responses_item((piece, id): &(&FakeReplyPiece, String)) -> Value {
    match piece {
        FakeReplyPiece::Text(text) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]})
        }
        FakeReplyPiece::Thinking(text) => {
            let part = json!({"type": "summary_text", "text": text});
            json!({"id": id, "type": "reasoning", "summary": [part], "encrypted_content": SIGNATURE})
        }
        FakeReplyPiece::Call { name, args, .. } => {
            json!({
                "id": format!("fc_{id}"),
                "type": "function_call",
                "status": "completed",
                "call_id": id,
                "name": name,
                "arguments": args,
            })
        }
    }
}
