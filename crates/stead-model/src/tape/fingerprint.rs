//! Part of tapes: fingerprints of requests, enough to find an answer and to describe a difference,
//! without the content.
//!
//! Effects: none.

use crate::Request;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::cmp::Reverse;
use stead_core::{Message, args_hash};

/// The fingerprint of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Fingerprint {
    system: String,
    tools: String,
    /// One entry per message, `role:hash`.
    pub(super) messages: Vec<String>,
}

impl Fingerprint {
    pub(super) fn of(request: &Request) -> Self {
        let system: Value = request
            .system
            .iter()
            .map(|part| part.text.as_str())
            .collect();
        let tools: Value = request
            .tools
            .iter()
            .map(|t| json!([t.name, t.description, t.parameters]))
            .collect();
        let messages = request
            .messages
            .iter()
            .map(|message| message_fingerprint(message))
            .collect();
        Self {
            system: args_hash(&system),
            tools: args_hash(&tools),
            messages,
        }
    }

    /// Returns a measure of the similarity to `asked`: the length of the common beginning, then how
    /// few messages only one of them has.
    pub(super) fn similarity(&self, asked: &Self) -> (usize, Reverse<usize>) {
        (
            self.common_prefix_len(asked),
            Reverse(self.messages.len().abs_diff(asked.messages.len())),
        )
    }

    /// Describes how `asked` differs from this recorded request.
    pub(super) fn difference(&self, asked: &Self) -> String {
        let at = self.common_prefix_len(asked);
        match (self.messages.get(at), asked.messages.get(at)) {
            (Some(was), Some(is)) => {
                let number = at + 1;
                let was = fingerprint_role(was);
                let is = fingerprint_role(is);
                if was == is {
                    format!("message {number} ({is}) is not the recorded one")
                } else {
                    format!("message {number} is from {is}, the recorded one from {was}")
                }
            }
            (None, Some(_)) => format!("the nearest recorded conversation ends after message {at}"),
            (Some(_), None) => format!(
                "the conversation ends after message {at}, the nearest recorded one goes on"
            ),
            (None, None) => "its system prompt or tools differ".into(),
        }
    }

    fn common_prefix_len(&self, asked: &Self) -> usize {
        self.messages
            .iter()
            .zip(&asked.messages)
            .take_while(|(was, is)| was == is)
            .count()
    }
}

fn message_fingerprint(message: &Message) -> String {
    let role = match message {
        Message::User { .. } => "user",
        Message::Assistant { .. } => "assistant",
        Message::Tool { .. } => "tool",
    };
    // A message is always representable as JSON.
    let mut value = serde_json::to_value(message).unwrap_or_default();
    remove_ids(&mut value);
    format!("{role}:{}", args_hash(&value))
}

/// Removes ids from a message. Results are in the order of their calls, so ids carry no
/// information; and if a provider gives none, a session invents them.
fn remove_ids(message: &mut Value) {
    let parts = ["content", "results"].map(|key| message.get_mut(key).map(Value::take));
    let parts = parts
        .into_iter()
        .flatten()
        .filter_map(|mut list| Some(std::mem::take(list.as_array_mut()?)));
    let without_id = parts.flatten().map(|mut part| {
        if let Some(fields) = part.as_object_mut() {
            fields.remove("id");
            fields.remove("seq");
        }
        part
    });
    *message = without_id.collect();
}

fn fingerprint_role(print: &str) -> &str {
    print.split(':').next().unwrap_or_default()
}
