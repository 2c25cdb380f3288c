//! Questions to the model that extracts and merges facts.
//!
//! Effects: the model.

use crate::context::MemoryQuestion;
use crate::error::MemoryError;
use crate::owner_memory::OwnerMemory;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The longest wait for one answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(180);
/// The longest answer that is asked for.
const ANSWER_TOKENS: u64 = 8_000;
/// The context window that is assumed if there is no model.
const NO_MODEL_WINDOW_TOKENS: u64 = 32_000;

impl OwnerMemory {
    /// The tokens that one question may have: half of the context window.
    pub(crate) fn question_tokens(&self) -> u64 {
        let model = self.cx.model();
        model.map_or(NO_MODEL_WINDOW_TOKENS, |model| model.window_tokens) / 2
    }

    /// Asks for an answer in JSON and parses it.
    pub(crate) async fn ask_json<T: DeserializeOwned>(
        &self,
        system: &str,
        text: String,
    ) -> Result<T, MemoryError> {
        let model = self.cx.model().ok_or(MemoryError::NoModel)?;
        let question = MemoryQuestion {
            owner: &self.owner,
            session: &self.session,
            system,
            text,
            max_answer_tokens: ANSWER_TOKENS.min(model.window_tokens / 4),
            timeout: ANSWER_TIMEOUT,
        };
        parse_embedded_json(&self.cx.ask(question).await?)
    }
}

/// Parses the JSON in an answer, which may be surrounded by text or a code fence.
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
