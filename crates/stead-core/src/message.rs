//! Messages between a person, a model and tools.
//!
//! Effects: none.

use crate::ResultStatus;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// From the user, or from the harness on the user's behalf.
    User {
        /// Text and media, in order.
        content: Vec<Block>,
    },
    /// From the model.
    Assistant {
        /// Thinking, text and tool calls, in the model's order.
        content: Vec<Block>,
    },
    /// The results of all calls of the assistant message before it, in the order of the calls.
    Tool {
        /// One result per call.
        results: Vec<ToolResult>,
    },
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// An image, document, sound or video.
    Media(Media),
    /// The model's thinking, sent back unchanged to the wire it came from.
    Thinking(Thinking),
    /// A tool call.
    ToolCall(ToolCall),
}

impl Block {
    /// Returns a text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// Returns the text, if it is a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text { text } => Some(text),
            Self::Media(_) | Self::Thinking(_) | Self::ToolCall(_) => None,
        }
    }

    /// Returns the block as plain text: a call as `name {arguments}`, media as `[type name]`.
    pub fn plain_text(&self) -> String {
        match self {
            Self::Text { text } => text.clone(),
            Self::Media(media) => format!("[{}]", media.label()),
            Self::Thinking(thinking) => thinking.text.clone(),
            Self::ToolCall(call) => format!("{} {}", call.name, call.args),
        }
    }
}

/// Bytes with a media type, as base64 text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Media {
    /// The MIME type, for example `image/png`.
    pub mime: String,
    /// The content in standard base64; empty if it is in `file`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// The file's name, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file of the workspace that holds the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The estimated tokens, computed when the content was available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl Media {
    /// Returns media with inline content.
    pub fn inline(mime: impl Into<String>, data: impl Into<String>, name: Option<String>) -> Self {
        Self {
            mime: mime.into(),
            data: data.into(),
            name,
            file: None,
            tokens: None,
        }
    }

    /// Returns the type and the name, if there is one: `image/png chart.png`.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {name}", self.mime),
            None => self.mime.clone(),
        }
    }
}

/// Reasoning content. `origin` names the wire that produced it: signatures are valid only there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thinking {
    /// The readable part; empty when redacted.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The provider's signature or encrypted content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The provider's id of this item, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Whether the provider withheld the text and gave only `signature`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The wire this came from: `anthropic`, `openai`, `responses`, `gemini`.
    pub origin: String,
}

/// A tool call requested by a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id, unique within the session; results refer to it.
    pub id: String,
    /// The tool's name as the model wrote it.
    pub name: String,
    /// The arguments; `{}` when they could not be parsed.
    pub args: Value,
    /// The reason why the arguments could not be parsed, for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// A provider's signature bound to this call (Gemini), sent back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The call's id.
    pub id: String,
    /// The tool's name, for wires that need it.
    pub name: String,
    /// How it ended.
    pub status: ResultStatus,
    /// The exit code of the command that the call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Text and media for the model.
    pub content: Vec<Block>,
    /// The sequence number of its entry; 0 if there is none.
    #[serde(default)]
    pub seq: u64,
}

impl Message {
    /// Returns a user message of one text.
    pub fn user(text: impl Into<String>) -> Self {
        Self::User {
            content: vec![Block::text(text)],
        }
    }

    /// Returns all text of this message, joined by blank lines.
    pub fn text(&self) -> String {
        let blocks: Vec<&Block> = match self {
            Self::User { content } | Self::Assistant { content } => content.iter().collect(),
            Self::Tool { results } => results.iter().flat_map(|r| &r.content).collect(),
        };
        let texts = blocks.into_iter().filter_map(Block::as_text);
        texts.collect::<Vec<_>>().join("\n\n")
    }

    /// Returns the calls of an assistant message, in order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        let content: &[Block] = match self {
            Self::Assistant { content } => content,
            Self::User { .. } | Self::Tool { .. } => &[],
        };
        content.iter().filter_map(|b| match b {
            Block::ToolCall(call) => Some(call),
            Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => None,
        })
    }
}
