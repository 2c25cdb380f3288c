//! The entry of a message that left the session through a channel.
//!
//! Effects: none.

use crate::{Block, RunId};
use serde::{Deserialize, Serialize};

/// A message that was sent to a channel, or is about to be.
///
/// It is recorded before the channel is asked to deliver it, and once more with the outcome, both
/// with the same key. A message without an outcome may have been delivered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentMessage {
    /// The run that sent it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The name of the channel.
    pub via: String,
    /// The conversation of the channel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The key with which the channel recognises a repetition.
    pub key: String,
    /// The content; left out where only the outcome is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Block>,
    /// How it ended; absent before the channel answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<DeliveryOutcome>,
}

/// The outcome of a delivery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum DeliveryOutcome {
    /// The channel accepted it.
    Delivered {
        /// The channel's own id of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// The channel refused it.
    Refused {
        /// The reason.
        reason: String,
    },
    /// Nobody knows whether it arrived.
    Unknown,
}
