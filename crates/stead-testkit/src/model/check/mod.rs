//! The checks of the providers, which run before a script is used.
//!
//! Each wire has one module. It walks a request once, refuses what its provider refuses (with a
//! similar message), and returns the content of the request in a form that is the same on every
//! wire.
//!
//! Effects: test support.

mod chat;
mod gemini;
mod messages;
mod responses;

use super::FakeWire;
use super::http::FakeHttpRequest;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The content of a request, the same on every wire.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedRequest {
    /// The system prompt, its parts joined by newlines.
    pub system: String,
    /// The names of the tools offered, in order.
    pub tools: Vec<String>,
    /// The conversation.
    pub turns: Vec<RequestTurn>,
}

/// One turn of the conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestTurn {
    /// Text of the user; media are left out.
    User(String),
    /// Text and calls of the model; thinking is left out.
    Assistant {
        /// The text.
        text: String,
        /// The calls, in order.
        calls: Vec<RequestCall>,
    },
    /// One tool result.
    Result {
        /// The id of the call; on Gemini, where calls have none, the tool's name.
        id: String,
        /// The text of the result.
        text: String,
    },
}

/// A tool call in a request.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestCall {
    /// The id; on Gemini, where calls have none, the tool's name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments.
    pub args: Value,
}

impl ParsedRequest {
    /// Returns the texts of the user's turns.
    pub fn user_texts(&self) -> impl Iterator<Item = &str> {
        self.turns.iter().filter_map(|turn| match turn {
            RequestTurn::User(text) => Some(text.as_str()),
            RequestTurn::Assistant { .. } | RequestTurn::Result { .. } => None,
        })
    }

    /// Returns the tool results as `(call id, text)`.
    pub fn results(&self) -> impl Iterator<Item = (&str, &str)> {
        self.turns.iter().filter_map(|turn| match turn {
            RequestTurn::Result { id, text } => Some((id.as_str(), text.as_str())),
            RequestTurn::User(_) | RequestTurn::Assistant { .. } => None,
        })
    }

    /// Returns the calls of the conversation.
    pub fn calls(&self) -> impl Iterator<Item = &RequestCall> {
        self.turns.iter().flat_map(|turn| match turn {
            RequestTurn::Assistant { calls, .. } => calls.as_slice(),
            RequestTurn::User(_) | RequestTurn::Result { .. } => &[],
        })
    }
}

/// The result of a check, with the provider's message as the error.
type CheckResult<T = ()> = Result<T, String>;

pub(super) fn check(
    wire: FakeWire,
    request: &FakeHttpRequest,
    json: &Value,
) -> CheckResult<ParsedRequest> {
    let body = json.as_object().ok_or("the body must be a JSON object")?;
    match wire {
        FakeWire::Chat => chat::check(body),
        FakeWire::Messages => messages::check(request, body),
        FakeWire::Responses => responses::check(body),
        FakeWire::Gemini => gemini::check(&request.target, body),
    }
}

/// The calls that wait for their results, and all ids so far.
#[derive(Debug, Default)]
struct Pairing {
    waiting: Vec<String>,
    used: HashSet<String>,
}

impl Pairing {
    /// Records a call. Refuses an id that was used before.
    fn call(&mut self, id: &str) -> CheckResult {
        if !self.used.insert(id.to_owned()) {
            return Err(format!("duplicate tool call id '{id}': ids must be unique"));
        }
        self.waiting.push(id.to_owned());
        Ok(())
    }

    /// Records a result. Returns whether a call with this id was waiting.
    fn result(&mut self, id: &str) -> bool {
        let found = self.waiting.iter().position(|waiting| waiting == id);
        found.map(|at| self.waiting.remove(at)).is_some()
    }
}

fn only_keys(
    object: &Map<String, Value>,
    known: &[&str],
    words: impl Fn(&str) -> String,
) -> CheckResult {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(words(key)),
        None => Ok(()),
    }
}

fn array<'a>(value: &'a Value, place: &str) -> CheckResult<&'a Vec<Value>> {
    value
        .as_array()
        .ok_or_else(|| format!("Invalid type for '{place}': expected an array"))
}

fn filled_array<'a>(value: &'a Value, place: &str) -> CheckResult<&'a Vec<Value>> {
    match array(value, place)? {
        empty if empty.is_empty() => Err(format!(
            "Invalid '{place}': empty array. Expected an array with minimum length 1"
        )),
        filled => Ok(filled),
    }
}

fn object<'a>(value: &'a Value, place: &str) -> CheckResult<&'a Map<String, Value>> {
    value
        .as_object()
        .ok_or_else(|| format!("Invalid type for '{place}': expected an object"))
}

fn string<'a>(value: &'a Value, place: &str) -> CheckResult<&'a str> {
    value
        .as_str()
        .ok_or_else(|| format!("Invalid type for '{place}': expected a string"))
}

fn filled_string<'a>(value: &'a Value, place: &str) -> CheckResult<&'a str> {
    match string(value, place)? {
        empty if empty.trim().is_empty() => Err(format!("Invalid '{place}': must not be empty")),
        filled => Ok(filled),
    }
}

/// Refuses a number outside `range`; it may be absent.
fn number_within(
    object: &Map<String, Value>,
    key: &str,
    range: std::ops::RangeInclusive<f64>,
) -> CheckResult {
    match object.get(key) {
        None | Some(Value::Null) => Ok(()),
        Some(value) if value.as_f64().is_some_and(|n| range.contains(&n)) => Ok(()),
        Some(value) => Err(format!(
            "Invalid '{key}': {value} is not between {} and {}",
            range.start(),
            range.end()
        )),
    }
}

/// Refuses anything but an integer of at least `least`; it may be absent.
fn whole_from(object: &Map<String, Value>, key: &str, least: u64) -> CheckResult {
    match object.get(key) {
        None | Some(Value::Null) => Ok(()),
        Some(value) if value.as_u64().is_some_and(|n| n >= least) => Ok(()),
        Some(value) => Err(format!(
            "Invalid '{key}': {value}. Expected an integer of at least {least}"
        )),
    }
}

/// Returns an id or name if it has 1 to `longest` of the characters that every provider allows.
fn identifier<'a>(value: &'a Value, place: &str, longest: usize) -> CheckResult<&'a str> {
    let text = string(value, place)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || text.len() > longest || !text.chars().all(allowed) {
        return Err(format!(
            "Invalid '{place}': '{text}' does not match pattern '^[a-zA-Z0-9_-]{{1,{longest}}}$'"
        ));
    }
    Ok(text)
}

/// Parses arguments that are sent as JSON text.
fn json_text(value: &Value, place: &str) -> CheckResult<Value> {
    let text = string(value, place)?;
    let parsed: Value = serde_json::from_str(text)
        .map_err(|_| format!("Invalid '{place}': not valid JSON: {text}"))?;
    if !parsed.is_object() {
        return Err(format!(
            "Invalid '{place}': the arguments must be a JSON object: {text}"
        ));
    }
    Ok(parsed)
}

/// Refuses a tool schema that does not describe an object.
fn schema(value: &Value, place: &str) -> CheckResult {
    match object(value, place)?.get("type").and_then(Value::as_str) {
        Some("object") => Ok(()),
        other => Err(format!(
            "Invalid schema for '{place}': schema must be of type 'object', got {other:?}"
        )),
    }
}

/// Adds a tool's name. Refuses a second tool with the same name.
fn add_tool(seen: &mut ParsedRequest, name: &str) -> CheckResult {
    if seen.tools.iter().any(|known| known == name) {
        return Err(format!("tools: Tool names must be unique: '{name}'"));
    }
    seen.tools.push(name.to_owned());
    Ok(())
}

fn starts_with_user(seen: &ParsedRequest) -> CheckResult {
    match seen.turns.first() {
        Some(RequestTurn::User(_)) => Ok(()),
        Some(RequestTurn::Assistant { .. } | RequestTurn::Result { .. }) => {
            Err("the first message must use the user role".into())
        }
        None => Err("there must be at least one message from the user".into()),
    }
}

fn join_line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}
