//! The place for the test that docs/journal.md names every field of every entry, and no other.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use stead_core::{ChainSum, Entry, decode_line, encode_line};

const DOC: &str = include_str!("../../../docs/journal.md");

/// One entry of each kind with every field it can have.
fn full_entries() -> Vec<(&'static str, Value)> {
    let text = json!([{"type": "text", "text": "x"}]);
    let origin = json!({"kind": "person", "by": "a", "via": "b", "thread": "c", "key": "d"});
    let model = json!({"name": "p:m", "base_url": "http://h", "key_variable": "K",
        "settings": {"temperature": 1}, "scope": "all_agents"});
    let usage = json!({"input_tokens": 1, "cache_read_tokens": 0, "cache_write_tokens": 0,
        "output_tokens": 1, "reasoning_tokens": 0});
    let taint = json!([{"kind": "command", "command": "ls"}]);
    let nested = |mut entry: Value| {
        let fields = json!({"parent": "c1", "name": "t", "args": {"a": 1}});
        let more = fields.as_object().unwrap().clone();
        entry.as_object_mut().unwrap().extend(more);
        entry
    };
    vec![
        (
            "session",
            json!({"version": 1, "session": "s", "agent": "a",
            "parent": {"session": "t", "seq": 1},
            "spawned": {"by": "t", "task": "k", "agent": "a", "label": "l", "depth": 1,
                "modes": ["explore"], "planning": "p", "denied": ["x"], "tainted": true,
                "taint": {"named": taint}, "files": "shared", "tree": "t"},
            "model": model}),
        ),
        (
            "user",
            json!({"run": "r", "cause": "resume", "origin": origin, "content": text,
            "raise": {"usd": 1.0, "tokens": 5}, "inputs": ["i1"], "output_schema": {"type": "object"}}),
        ),
        (
            "model",
            json!({"run": "r", "model": "p:m", "content": text,
            "usage": usage, "cost": 0.5, "stop": "end_turn"}),
        ),
        (
            "call",
            nested(
                json!({"run": "r", "id": "c1/1", "tool": "t", "args_hash": "h",
            "changes": true, "repeatable": true}),
            ),
        ),
        (
            "result",
            nested(
                json!({"run": "r", "id": "c1/1", "status": "ok", "exit_code": 0, "content": text,
            "seen": {"a": "v"}, "activates": {"skill": "s", "version": "v"}, "untrusted": true,
            "taint": taint, "change": {"sets": "trust"}, "tasks": ["k"], "ms": 1}),
            ),
        ),
        (
            "ask",
            nested(
                json!({"run": "r", "id": "c1/1", "args_hash": "h", "rule": "why",
            "rules": ["mode:default"], "decisions": ["approve"], "answerers": ["a"],
            "expires": "2026-01-01T00:00:00Z", "preview": "p", "files": {"a.txt": "v1"}}),
            ),
        ),
        (
            "decision",
            json!({"run": "r", "id": "c1", "args_hash": "h", "approved": false,
            "by": "a", "args": {"a": 1}, "words": "w", "responds": true, "seal": "s"}),
        ),
        (
            "notice",
            json!({"run": "r", "kind": "tasks", "text": "x", "tasks": ["k"],
            "tools": ["t"], "untrusted": true, "taint": taint}),
        ),
        (
            "steer",
            json!({"run": "r", "content": text, "origin": origin, "inputs": ["i1"]}),
        ),
        ("pin", json!({"seq": 2, "pinned": true})),
        (
            "compaction",
            json!({"run": "r", "cause": "limit", "covers": 1, "summary": "s",
            "cut_args": 1, "cut_results": 1, "kept": [{"tag": "t", "text": "x"}],
            "dropped": {"messages": 1, "results": 1, "calls": 1}, "before_tokens": 2,
            "after_tokens": 1, "window": 9, "focus": "f", "fallback": "b", "model": "p:m",
            "usage": usage, "cost": 0.5}),
        ),
        (
            "hook",
            json!({"run": "r", "event": "e", "hook": "h", "outcome": "passed", "call": "c1/1",
            "detail": "d", "args": {"a": 1}, "ms": 1,
            "nested": {"parent": "c1", "name": "t", "args": {"a": 1}}}),
        ),
        (
            "sent",
            json!({"run": "r", "via": "telegram", "thread": "t", "key": "k", "content": text,
            "outcome": {"is": "delivered", "id": "1"}}),
        ),
        (
            "sent",
            json!({"run": "r", "via": "telegram", "thread": "t", "key": "k", "content": text,
            "outcome": {"is": "delivered", "id": "1"}}),
        ),
        ("rewind", json!({"to": 1})),
        (
            "end",
            json!({"run": "r", "outcome": "completed", "reason": "w"}),
        ),
    ]
}

/// The fields in the first table of each section of the document, by the section's heading.
fn documented() -> BTreeMap<String, BTreeSet<String>> {
    let mut sections = BTreeMap::new();
    for section in DOC.split("\n### `").skip(1) {
        let (kind, rest) = section.split_once('`').unwrap();
        let rows = rest
            .lines()
            .skip_while(|line| !line.starts_with('|'))
            .take_while(|line| line.starts_with('|'));
        let mut fields = BTreeSet::new();
        for row in rows {
            let cell = row.split('|').nth(1).unwrap_or_default();
            for name in cell.split('`').skip(1).step_by(2) {
                fields.insert(name.trim_end_matches('?').to_owned());
            }
        }
        sections.insert(kind.to_owned(), fields);
    }
    sections
}

#[test]
fn the_document_names_every_field_of_every_entry_and_no_other() {
    let documented = documented();
    for (kind, data) in full_entries() {
        let given: BTreeSet<String> = data.as_object().unwrap().keys().cloned().collect();
        let line =
            format!(r#"{{"seq":1,"at":"2026-01-01T00:00:00.000Z","kind":"{kind}","data":{data}"#);
        let sum = checksum(&line);
        let line = format!(r#"{line},"sum":"{sum}"}}"#);
        let read = decode_line(&line, ChainSum::START).unwrap_or_else(|e| panic!("{kind}: {e}"));
        // Nothing that was given is left out when the entry is written again: the fields are real.
        let written = written_fields(&read.entry);
        assert_eq!(written, given, "{kind}: fields as written");
        assert_eq!(
            documented.get(kind),
            Some(&written),
            "{kind}: docs/journal.md"
        );
    }
}

/// The checksum of the first line of a journal.
fn checksum(text: &str) -> String {
    let digest = Sha256::new()
        .chain_update([0u8; 8])
        .chain_update(text)
        .finalize();
    digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn written_fields(entry: &Entry) -> BTreeSet<String> {
    let (text, _) = encode_line(1, jiff::Timestamp::UNIX_EPOCH, entry, ChainSum::START);
    let value: Value = serde_json::from_str(&text).unwrap();
    value["data"].as_object().unwrap().keys().cloned().collect()
}
