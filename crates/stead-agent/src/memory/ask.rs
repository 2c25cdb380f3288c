//! One question to the model that extracts and merges.

use super::error::MemoryError;
use super::owner_memory::OwnerMemory;
use crate::metered_model::{MeteredError, MeteredModel};
use crate::model_facts::UNKNOWN_SIDE_WINDOW_TOKENS;
use crate::{Agent, Purpose};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Duration;
use stead_core::Block;
use stead_model::Model;

/// Longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// Longest answer that is wanted.
const ANSWER_TOKENS: u64 = 8_000;

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
            .and_then(|model| model.context_window())
            .unwrap_or(UNKNOWN_SIDE_WINDOW_TOKENS)
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
        let budget = self.budget(&home.owner);
        let metered = MeteredModel::new(&self.parts, &**model, &budget);
        let longest = metered
            .answer_tokens(ANSWER_TOKENS)
            .min(metered.window() / 4);
        let answer = metered.ask_within(system, question, longest, ANSWER_TIMEOUT);
        let answer = answer.await.map_err(|error| match error {
            MeteredError::Budget(error) => MemoryError::Budget(error),
            MeteredError::Model(error) => MemoryError::Model(error),
            MeteredError::TimedOut(limit) => MemoryError::Slow(limit.as_secs()),
        })?;
        // A line that cannot be written is missing in the usage log, and nothing else.
        let _ = answer
            .log(&self.parts, (&home.owner, &home.session), Purpose::Memory)
            .await;
        let text = answer.reply.content.iter().filter_map(|block| match block {
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
