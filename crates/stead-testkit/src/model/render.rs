//! A reply put on a wire, whole or as events.

use super::script::{Answer, Body, Piece, Reply};
use super::{Mode, Wire};
use serde_json::{Value, json};
use std::fmt::Write;
use stead_core::{StopReason, Usage};

/// What an answer needs to know about the question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Makes the ids of this answer unique on the server.
    pub(super) serial: usize,
    pub(super) request_bytes: usize,
}

/// The body of a [`reply`](super::reply) on a wire. `serial` makes its ids unique; its input tokens are
/// estimated from `request_bytes` unless the reply says otherwise. Panics on any other kind of answer.
pub fn render(answer: &Answer, wire: Wire, mode: Mode, serial: usize, request_bytes: usize) -> String {
    match &answer.body {
        Body::Reply(reply) => body(reply, wire, mode, Asked { serial, request_bytes }),
        other => panic!("only a reply() can be rendered, not {other:?}"),
    }
}

pub(super) fn body(reply: &Reply, wire: Wire, mode: Mode, asked: Asked) -> String {
    let whole = Whole::new(reply, asked);
    match (wire, mode) {
        (Wire::Chat, Mode::Whole) => whole.chat().to_string(),
        (Wire::Chat, Mode::Stream) => whole.chat_events(),
        (Wire::Chat, Mode::StreamWithUsage) => {
            let mut out = whole.chat_events();
            out.truncate(out.len() - CHAT_END.len());
            event(
                &mut out,
                None,
                &json!({"id": whole.id, "object": "chat.completion.chunk", "created": CREATED, "model": MODEL, "choices": [], "usage": whole.chat_usage()}),
            );
            out + CHAT_END
        }
        (Wire::Messages, Mode::Whole) => whole.messages().to_string(),
        (Wire::Messages, Mode::Stream | Mode::StreamWithUsage) => whole.messages_events(),
        (Wire::Responses, Mode::Whole) => whole.responses().to_string(),
        (Wire::Responses, Mode::Stream | Mode::StreamWithUsage) => whole.responses_events(),
        (Wire::Gemini, Mode::Whole) => whole.gemini(whole.gemini_parts(), Some(whole.gemini_stop())).to_string(),
        (Wire::Gemini, Mode::Stream | Mode::StreamWithUsage) => whole.gemini_events(),
    }
}

const MODEL: &str = "fake";
const CREATED: u64 = 1_700_000_000;
const CHAT_END: &str = "data: [DONE]\n\n";
const SIGNATURE: &str = "c2lnbmF0dXJl";

/// A reply with everything filled in that the script left open.
struct Whole<'a> {
    id: String,
    pieces: Vec<(&'a Piece, String)>,
    usage: Usage,
    stop: StopReason,
}

impl<'a> Whole<'a> {
    fn new(reply: &'a Reply, asked: Asked) -> Self {
        let id_of = |(k, piece): (usize, &'a Piece)| match piece {
            Piece::Call { id: Some(id), .. } => (piece, id.clone()),
            Piece::Call { id: None, .. } => (piece, format!("call_{:04}_{k}", asked.serial)),
            Piece::Thinking(_) => (piece, format!("rs_{:04}_{k}", asked.serial)),
            Piece::Text(_) => (piece, format!("msg_{:04}_{k}", asked.serial)),
        };
        let pieces: Vec<_> = reply.pieces.iter().enumerate().map(id_of).collect();
        let has_calls = reply.pieces.iter().any(|piece| matches!(piece, Piece::Call { .. }));
        let output_bytes: usize = reply.pieces.iter().map(Piece::len).sum();
        let estimate = || Usage {
            input_tokens: asked.request_bytes as u64 / 4,
            output_tokens: 1 + output_bytes as u64 / 4,
            ..Usage::default()
        };
        Self {
            id: format!("resp_{:04}", asked.serial),
            pieces,
            usage: reply.usage.unwrap_or_else(estimate),
            stop: reply.stop.clone().unwrap_or(if has_calls { StopReason::ToolUse } else { StopReason::EndTurn }),
        }
    }

    fn texts(&self) -> Option<String> {
        self.joined(|piece| match piece {
            Piece::Text(text) => Some(text),
            Piece::Thinking(_) | Piece::Call { .. } => None,
        })
    }

    fn thoughts(&self) -> Option<String> {
        self.joined(|piece| match piece {
            Piece::Thinking(text) => Some(text),
            Piece::Text(_) | Piece::Call { .. } => None,
        })
    }

    fn joined(&self, pick: impl Fn(&Piece) -> Option<&String>) -> Option<String> {
        let found: Vec<&str> = self.pieces.iter().filter_map(|(p, _)| pick(p)).map(String::as_str).collect();
        (!found.is_empty()).then(|| found.concat())
    }

    // ---- Chat Completions

    fn chat(&self) -> Value {
        let mut message = json!({"role": "assistant", "content": self.texts()});
        if let Some(thoughts) = self.thoughts() {
            message["reasoning_content"] = json!(thoughts);
        }
        let call = |(piece, id): &(&Piece, String)| match piece {
            Piece::Call { name, args, .. } => {
                Some(json!({"id": id, "type": "function", "function": {"name": name, "arguments": args}}))
            }
            Piece::Text(_) | Piece::Thinking(_) => None,
        };
        let calls: Vec<Value> = self.pieces.iter().filter_map(call).collect();
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.chat_stop(), "logprobs": null});
        json!({"id": self.id, "object": "chat.completion", "created": CREATED, "model": MODEL, "choices": [choice], "usage": self.chat_usage()})
    }

    fn chat_events(&self) -> String {
        let mut out = String::new();
        let mut chunk = |delta: Value, finish: Option<&str>| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
            event(
                &mut out,
                None,
                &json!({"id": self.id, "object": "chat.completion.chunk", "created": CREATED, "model": MODEL, "choices": [choice]}),
            );
        };
        chunk(json!({"role": "assistant", "content": ""}), None);
        let mut index = 0;
        for (piece, id) in &self.pieces {
            match piece {
                Piece::Text(text) => words(text).for_each(|word| chunk(json!({"content": word}), None)),
                Piece::Thinking(text) => words(text).for_each(|word| chunk(json!({"reasoning_content": word}), None)),
                Piece::Call { name, args, .. } => {
                    let function = json!({"name": name, "arguments": ""});
                    let start = json!({"index": index, "id": id, "type": "function", "function": function});
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
        out + CHAT_END
    }

    fn chat_stop(&self) -> &str {
        match &self.stop {
            StopReason::EndTurn | StopReason::StopSequence | StopReason::Refusal => "stop",
            StopReason::ToolUse => "tool_calls",
            StopReason::MaxTokens => "length",
            StopReason::ContentFilter => "content_filter",
            StopReason::Other(reason) => reason,
        }
    }

    fn chat_usage(&self) -> Value {
        let Usage { input_tokens, output_tokens, cache_read_tokens, reasoning_tokens, .. } = self.usage;
        json!({
            "prompt_tokens": input_tokens,
            "completion_tokens": output_tokens,
            "total_tokens": input_tokens + output_tokens,
            "prompt_tokens_details": {"cached_tokens": cache_read_tokens},
            "completion_tokens_details": {"reasoning_tokens": reasoning_tokens},
        })
    }

    // ---- Messages

    fn messages(&self) -> Value {
        let block = |(piece, id): &(&Piece, String)| match piece {
            Piece::Text(text) => json!({"type": "text", "text": text}),
            Piece::Thinking(text) => json!({"type": "thinking", "thinking": text, "signature": SIGNATURE}),
            Piece::Call { name, args, .. } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": object(args)})
            }
        };
        let content: Vec<Value> = self.pieces.iter().map(block).collect();
        let mut usage = self.messages_usage();
        usage["output_tokens"] = json!(self.usage.output_tokens);
        json!({"id": self.id, "type": "message", "role": "assistant", "model": MODEL, "content": content, "stop_reason": self.messages_stop(), "stop_sequence": null, "usage": usage})
    }

    fn messages_events(&self) -> String {
        let mut out = String::new();
        let mut send = |value: Value| {
            let name = value["type"].as_str().expect("every event has a type").to_owned();
            event(&mut out, Some(&name), &value);
        };
        let mut usage = self.messages_usage();
        usage["output_tokens"] = json!(1);
        let message = json!({"id": self.id, "type": "message", "role": "assistant", "model": MODEL, "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
        send(json!({"type": "message_start", "message": message}));
        send(json!({"type": "ping"}));
        for (index, (piece, id)) in self.pieces.iter().enumerate() {
            let start = |block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
            let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
            match piece {
                Piece::Text(text) => {
                    send(start(json!({"type": "text", "text": ""})));
                    words(text).for_each(|word| send(delta(json!({"type": "text_delta", "text": word}))));
                }
                Piece::Thinking(text) => {
                    send(start(json!({"type": "thinking", "thinking": "", "signature": ""})));
                    words(text).for_each(|word| send(delta(json!({"type": "thinking_delta", "thinking": word}))));
                    send(delta(json!({"type": "signature_delta", "signature": SIGNATURE})));
                }
                Piece::Call { name, args, .. } => {
                    send(start(json!({"type": "tool_use", "id": id, "name": name, "input": {}})));
                    quarters(args)
                        .for_each(|part| send(delta(json!({"type": "input_json_delta", "partial_json": part}))));
                }
            }
            send(json!({"type": "content_block_stop", "index": index}));
        }
        let end = json!({"stop_reason": self.messages_stop(), "stop_sequence": null});
        send(json!({"type": "message_delta", "delta": end, "usage": {"output_tokens": self.usage.output_tokens}}));
        send(json!({"type": "message_stop"}));
        out
    }

    fn messages_stop(&self) -> &str {
        match &self.stop {
            StopReason::EndTurn => "end_turn",
            StopReason::ToolUse => "tool_use",
            StopReason::MaxTokens => "max_tokens",
            StopReason::StopSequence => "stop_sequence",
            StopReason::Refusal | StopReason::ContentFilter => "refusal",
            StopReason::Other(reason) => reason,
        }
    }

    fn messages_usage(&self) -> Value {
        let Usage { input_tokens, cache_read_tokens, cache_write_tokens, .. } = self.usage;
        // This provider counts cached tokens apart from the others.
        let uncached = input_tokens.saturating_sub(cache_read_tokens + cache_write_tokens);
        json!({"input_tokens": uncached, "cache_creation_input_tokens": cache_write_tokens, "cache_read_input_tokens": cache_read_tokens})
    }

    // ---- Responses

    fn responses(&self) -> Value {
        let output: Vec<Value> = self.pieces.iter().map(responses_item).collect();
        self.responses_object(self.responses_status(), &output)
    }

    fn responses_status(&self) -> &'static str {
        match &self.stop {
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Refusal => "completed",
            StopReason::MaxTokens | StopReason::ContentFilter | StopReason::Other(_) => "incomplete",
        }
    }

    fn responses_object(&self, status: &str, output: &[Value]) -> Value {
        let reason = match &self.stop {
            StopReason::MaxTokens => Some("max_output_tokens"),
            StopReason::ContentFilter => Some("content_filter"),
            StopReason::Other(reason) => Some(reason.as_str()),
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence | StopReason::Refusal => None,
        };
        let details = (status == "incomplete").then(|| json!({"reason": reason}));
        let Usage { input_tokens, output_tokens, cache_read_tokens, reasoning_tokens, .. } = self.usage;
        let usage = (status != "in_progress").then(|| {
            json!({
                "input_tokens": input_tokens,
                "input_tokens_details": {"cached_tokens": cache_read_tokens},
                "output_tokens": output_tokens,
                "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
                "total_tokens": input_tokens + output_tokens,
            })
        });
        json!({"id": self.id, "object": "response", "created_at": CREATED, "model": MODEL, "status": status, "incomplete_details": details, "error": null, "output": output, "usage": usage})
    }

    fn responses_events(&self) -> String {
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
                Piece::Text(text) => {
                    let place = json!({"item_id": id, "output_index": at, "content_index": 0});
                    opened["content"] = json!([]);
                    send("response.output_item.added", json!({"output_index": at, "item": opened}));
                    let part = json!({"type": "output_text", "text": "", "annotations": []});
                    send("response.content_part.added", with(&place, "part", part));
                    words(text).for_each(|word| send("response.output_text.delta", with(&place, "delta", json!(word))));
                    send("response.output_text.done", with(&place, "text", json!(text)));
                    send("response.content_part.done", with(&place, "part", item["content"][0].clone()));
                }
                Piece::Thinking(text) => {
                    let place = json!({"item_id": id, "output_index": at, "summary_index": 0});
                    opened["summary"] = json!([]);
                    send("response.output_item.added", json!({"output_index": at, "item": opened}));
                    let part = json!({"type": "summary_text", "text": ""});
                    send("response.reasoning_summary_part.added", with(&place, "part", part));
                    words(text).for_each(|word| {
                        send("response.reasoning_summary_text.delta", with(&place, "delta", json!(word)));
                    });
                    send("response.reasoning_summary_text.done", with(&place, "text", json!(text)));
                    send("response.reasoning_summary_part.done", with(&place, "part", item["summary"][0].clone()));
                }
                Piece::Call { args, .. } => {
                    let place = json!({"item_id": format!("fc_{id}"), "output_index": at});
                    opened["arguments"] = json!("");
                    send("response.output_item.added", json!({"output_index": at, "item": opened}));
                    for part in quarters(args) {
                        send("response.function_call_arguments.delta", with(&place, "delta", json!(part)));
                    }
                    send("response.function_call_arguments.done", with(&place, "arguments", json!(args)));
                }
            }
            send("response.output_item.done", json!({"output_index": at, "item": item}));
        }
        let whole = self.responses();
        send(&format!("response.{}", self.responses_status()), json!({"response": whole}));
        out
    }

    // ---- Gemini

    fn gemini_parts(&self) -> Vec<Value> {
        // The provider binds its signature to the first call after it has thought.
        let mut signature = self.thoughts().map(|_| SIGNATURE);
        let part = |(piece, _): &(&Piece, String)| match piece {
            Piece::Text(text) => json!({"text": text}),
            Piece::Thinking(text) => json!({"text": text, "thought": true}),
            Piece::Call { name, args, .. } => {
                let mut part = json!({"functionCall": {"name": name, "args": object(args)}});
                if let Some(signature) = signature.take() {
                    part["thoughtSignature"] = json!(signature);
                }
                part
            }
        };
        self.pieces.iter().map(part).collect()
    }

    fn gemini_stop(&self) -> &str {
        match &self.stop {
            StopReason::EndTurn | StopReason::ToolUse | StopReason::StopSequence => "STOP",
            StopReason::MaxTokens => "MAX_TOKENS",
            StopReason::Refusal | StopReason::ContentFilter => "SAFETY",
            StopReason::Other(reason) => reason,
        }
    }

    fn gemini(&self, parts: Vec<Value>, finish: Option<&str>) -> Value {
        let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
        if let Some(finish) = finish {
            candidate["finishReason"] = json!(finish);
        }
        let Usage { input_tokens, output_tokens, cache_read_tokens, reasoning_tokens, .. } = self.usage;
        json!({
            "candidates": [candidate],
            "modelVersion": MODEL,
            "responseId": self.id,
            "usageMetadata": {
                "promptTokenCount": input_tokens,
                "cachedContentTokenCount": cache_read_tokens,
                "candidatesTokenCount": output_tokens.saturating_sub(reasoning_tokens),
                "thoughtsTokenCount": reasoning_tokens,
                "totalTokenCount": input_tokens + output_tokens,
            },
        })
    }

    fn gemini_events(&self) -> String {
        let mut out = String::new();
        let mut send = |part: Value, finish| event(&mut out, None, &self.gemini(vec![part], finish));
        for part in self.gemini_parts() {
            match part["text"].as_str() {
                Some(text) => words(text).for_each(|word| send(with(&part, "text", json!(word)), None)),
                None => send(part, None),
            }
        }
        send(json!({"text": ""}), Some(self.gemini_stop()));
        out
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Self::Text(text) | Self::Thinking(text) => text.len(),
            Self::Call { name, args, .. } => name.len() + args.len(),
        }
    }
}

fn responses_item((piece, id): &(&Piece, String)) -> Value {
    match piece {
        Piece::Text(text) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]})
        }
        Piece::Thinking(text) => {
            let part = json!({"type": "summary_text", "text": text});
            json!({"id": id, "type": "reasoning", "summary": [part], "encrypted_content": SIGNATURE})
        }
        Piece::Call { name, args, .. } => {
            let item_id = format!("fc_{id}");
            json!({"id": item_id, "type": "function_call", "status": "completed", "call_id": id, "name": name, "arguments": args})
        }
    }
}

fn with(base: &Value, key: &str, value: Value) -> Value {
    let mut out = base.clone();
    out[key] = value;
    out
}

fn object(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| json!({}))
}

fn event(out: &mut String, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        writeln!(out, "event: {name}").expect("a String takes everything");
    }
    write!(out, "data: {data}\n\n").expect("a String takes everything");
}

/// The words of a text, spaces kept.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(' ')
}

/// A text in four pieces of about the same size, none of them empty.
fn quarters(text: &str) -> impl Iterator<Item = &str> {
    let cut =
        |k: usize| (text.len() * k / 4..=text.len()).find(|at| text.is_char_boundary(*at)).expect("the end is one");
    (0..4).map(move |k| &text[cut(k)..cut(k + 1)]).filter(|part| !part.is_empty())
}
