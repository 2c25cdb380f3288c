//! One question to the model that extracts and merges.

use super::error::MemoryError;
use super::owner_memory::OwnerMemory;
use crate::{Agent, Purpose, UsageRecord};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{Block, CallEstimate, Message, message_tokens, text_tokens};
use stead_model::{Model, Params, Request, SystemPart, ToolChoice};

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// Longest answer that is wanted.
const ANSWER_TOKENS: u64 = 8_000;
/// The window of a model that nobody knows.
const UNKNOWN_WINDOW: u64 = 32_000;

impl Agent {
    /// The model that extracts and merges facts: the one that was set, or else the agent's own. A
    /// script or a tape answers only what it was made for.
    pub fn memory_model(&self) -> Option<&Arc<dyn Model>> {
        let own = &self.parts.model;
        let is_asked = !["scripted:", "replay:", "none"]
            .iter()
            .any(|kind| own.name().starts_with(kind));
        self.parts
            .memory_model
            .as_ref()
            .or(Some(own).filter(|_| is_asked))
    }

    /// Tokens that one question about memory may have: never more than half of the window.
    pub(super) fn question_tokens(&self) -> u64 {
        self.memory_model()
            .and_then(|model| model.facts().context_window)
            .unwrap_or(UNKNOWN_WINDOW)
            / 2
    }

    /// Asks for JSON, and takes nothing else for an answer. What it costs is taken from the day's
    /// budget, and written down.
    pub(super) async fn ask_json<T: DeserializeOwned>(
        &self,
        home: &OwnerMemory,
        system: &str,
        question: String,
    ) -> Result<T, MemoryError> {
        let model = self.memory_model().ok_or(MemoryError::NoModel)?;
        let quarter = model.facts().context_window.unwrap_or(UNKNOWN_WINDOW) / 4;
        let longest = model
            .facts()
            .max_output_tokens
            .unwrap_or(ANSWER_TOKENS)
            .min(ANSWER_TOKENS)
            .min(quarter);
        let params = Params {
            max_output_tokens: Some(longest as u32),
            tool_choice: ToolChoice::None,
            ..Params::default()
        };
        let request = Request {
            system: [SystemPart {
                text: system.to_owned(),
                stable: true,
            }]
            .into(),
            messages: vec![Arc::new(Message::user(question))],
            params,
            ..Request::default()
        };
        let estimate = CallEstimate {
            input_tokens: text_tokens(system)
                + request
                    .messages
                    .iter()
                    .map(|said| message_tokens(said))
                    .sum::<u64>(),
            answer_tokens: longest,
            thinking_tokens: 0,
            price: self.price_from(&**model, model.name()),
        };
        let reservation = self.budget(&home.owner).reserve(estimate).await?;
        let begun = Instant::now();
        let reply = match tokio::time::timeout(ANSWER_TIMEOUT, model.complete(&request)).await {
            Ok(Ok(reply)) => reply,
            Ok(Err(error)) => {
                reservation.release().await?;
                return Err(error.into());
            }
            Err(_) => {
                reservation.charge_in_full().await?;
                return Err(MemoryError::Slow(ANSWER_TIMEOUT.as_secs()));
            }
        };
        let cost = self.cost_of(&**model, &reply, request.params.caching);
        reservation.settle(&reply.usage, cost).await?;
        let record = UsageRecord::new(
            &home.owner.user,
            &home.session,
            Purpose::Memory,
            &reply.model,
        );
        let ms = u64::try_from(begun.elapsed().as_millis()).ok();
        // What could not be written down is missing in a list, and nothing else.
        let _ = self
            .log_usage(
                &home.owner,
                &[UsageRecord {
                    ms,
                    ..record.with_usage(reply.usage, cost)
                }],
            )
            .await;
        let text = reply.content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
        });
        parse_embedded_json(&text.collect::<String>())
    }
}

/// The JSON in an answer, which may stand between other words or in a fence.
fn parse_embedded_json<T: DeserializeOwned>(answer: &str) -> Result<T, MemoryError> {
    let first = answer.find(['[', '{']);
    let last = answer.rfind([']', '}']);
    let (Some(first), Some(last)) = (
        first,
        last.filter(|last| first.is_some_and(|first| first < *last)),
    ) else {
        return Err(MemoryError::Answer("there is no JSON in it".to_owned()));
    };
    serde_json::from_str(&answer[first..=last])
        .map_err(|error| MemoryError::Answer(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_found_among_other_words_and_nothing_else_is_taken_for_it() {
        let table = [
            ("[1, 2]", Some(vec![1, 2])),
            ("Here:\n```json\n[3]\n```\nDone.", Some(vec![3])),
            ("[]", Some(vec![])),
            ("", None),
            ("none", None),
            ("] [", None),
            ("[1, 2", None),
            ("{\"a\": 1}", None),
        ];
        for (answer, want) in table {
            assert_eq!(
                parse_embedded_json::<Vec<u32>>(answer).ok(),
                want,
                "{answer:?}"
            );
        }
    }
}
