//! Part of the scripted model: the conditions of its script on the messages that it was sent.
//!
//! Effects: none.

use serde::Deserialize;
use std::ops::Range;
use std::sync::Arc;
use stead_core::Message;

use crate::{Request, SystemPart};

/// Texts that must have been sent. All given ones must hold; an empty condition always holds.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Condition {
    /// In the messages since the model's last answer.
    last_contains: TextList,
    /// Anywhere in the conversation.
    any_contains: TextList,
    /// In the tool results since the model's last answer.
    tool_result_contains: TextList,
    /// In the system prompt.
    system_contains: TextList,
    /// In any message of the user.
    user_contains: TextList,
}

/// One text, or several that must all be present.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum TextList {
    One(String),
    All(Vec<String>),
}

impl Default for TextList {
    fn default() -> Self {
        Self::All(Vec::new())
    }
}

impl TextList {
    fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::All(texts) => texts,
        }
    }
}

/// What the model had been sent when one of its answers was requested.
#[derive(Debug, Clone)]
pub(super) struct SentPrompt<'a> {
    system: &'a [SystemPart],
    messages: &'a [Arc<Message>],
    /// The index in `messages` of the first message since the model's last answer.
    fresh: usize,
}

impl<'a> SentPrompt<'a> {
    /// Returns one view per answer in the conversation, then one for the answer requested now.
    pub(super) fn for_each_answer(request: &'a Request) -> impl Iterator<Item = Self> {
        let answers = request
            .messages
            .iter()
            .enumerate()
            .filter(|(_, message)| is_answer(message))
            .map(|(at, _)| at);
        let ends = answers.chain([request.messages.len()]);
        ends.scan(0, |start, end| Some(std::mem::replace(start, end + 1)..end))
            .map(|Range { start, end }| Self {
                system: &request.system,
                messages: &request.messages[..end],
                fresh: start,
            })
    }

    fn fresh(&self) -> &'a [Arc<Message>] {
        &self.messages[self.fresh..]
    }
}

fn is_answer(message: &Message) -> bool {
    match message {
        Message::Assistant { .. } => true,
        Message::User { .. } | Message::Tool { .. } => false,
    }
}

fn is_result(message: &Message) -> bool {
    match message {
        Message::Tool { .. } => true,
        Message::User { .. } | Message::Assistant { .. } => false,
    }
}

fn is_input(message: &Message) -> bool {
    match message {
        Message::User { .. } => true,
        Message::Assistant { .. } | Message::Tool { .. } => false,
    }
}

impl Condition {
    /// Returns whether all required texts were sent.
    pub(super) fn holds(&self, seen: &SentPrompt<'_>) -> bool {
        self.first_missing(seen).is_none()
    }

    /// Describes the first required text that was not sent.
    pub(super) fn first_missing(&self, seen: &SentPrompt<'_>) -> Option<String> {
        let said = |messages: &[Arc<Message>], text: &str, of: fn(&Message) -> bool| {
            messages
                .iter()
                .any(|message| of(message) && message.text().contains(text))
        };
        let any: fn(&Message) -> bool = |_| true;
        let Self {
            last_contains,
            any_contains,
            tool_result_contains,
            system_contains,
            user_contains,
        } = self;
        let lacks = |key: &str, texts: &TextList, sent: &dyn Fn(&str) -> bool| {
            texts
                .as_slice()
                .iter()
                .find(|text| !sent(text))
                .map(|text| format!("{key}: {text:?}"))
        };
        lacks("last_contains", last_contains, &|text| {
            said(seen.fresh(), text, any)
        })
        .or_else(|| {
            lacks("any_contains", any_contains, &|text| {
                said(seen.messages, text, any)
            })
        })
        .or_else(|| {
            lacks("tool_result_contains", tool_result_contains, &|text| {
                said(seen.fresh(), text, is_result)
            })
        })
        .or_else(|| {
            lacks("system_contains", system_contains, &|text| {
                seen.system.iter().any(|p| p.text.contains(text))
            })
        })
        .or_else(|| {
            lacks("user_contains", user_contains, &|text| {
                said(seen.messages, text, is_input)
            })
        })
    }
}
