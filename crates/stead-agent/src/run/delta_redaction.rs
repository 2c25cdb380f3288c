//! Redaction of a reply while it streams: a secret may be spread over several deltas.
//!
//! Effects: none.

use stead_core::{EventKind, RedactStream, Redactor};

/// The text of one part of a reply, as far as it may be shown.
pub(super) struct DeltaRedaction {
    redactor: Redactor,
    current: Option<(DeltaPart, RedactStream)>,
}

/// A part of a reply that streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeltaPart {
    Text,
    Thinking,
    Args(u32),
}

impl DeltaPart {
    fn event(self, text: String) -> EventKind {
        match self {
            Self::Text => EventKind::TextDelta { text },
            Self::Thinking => EventKind::ThinkingDelta { text },
            Self::Args(index) => EventKind::ToolArgsDelta { index, json: text },
        }
    }
}

impl DeltaRedaction {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self {
            redactor,
            current: None,
        }
    }

    /// Takes a delta, and returns the events that can be told now: the rest of another part, and
    /// what of this one is no beginning of a secret.
    pub(super) fn push(&mut self, part: DeltaPart, text: &str) -> [Option<EventKind>; 2] {
        let ended = match &self.current {
            Some((current, _)) if *current == part => None,
            Some(_) | None => self.finish(),
        };
        let (_, stream) = self
            .current
            .get_or_insert_with(|| (part, self.redactor.stream()));
        let known = event(part, &stream.push(text.as_bytes()));
        [ended, known]
    }

    /// Returns the rest of the part that streams.
    pub(super) fn finish(&mut self) -> Option<EventKind> {
        let (part, mut stream) = self.current.take()?;
        event(part, &stream.finish())
    }
}

/// Returns the event of a text; none if it is empty. Secrets begin and end with whole characters, so
/// what is left is text.
fn event(part: DeltaPart, text: &[u8]) -> Option<EventKind> {
    let text = String::from_utf8_lossy(text).into_owned();
    (!text.is_empty()).then(|| part.event(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_pieces_is_not_told_and_other_text_is_not_held_back() {
        let mut deltas = DeltaRedaction::new(Redactor::new(["sk-cänary".to_owned()]));
        let text = |text: &str| Some(EventKind::TextDelta { text: text.into() });
        let thought = |text: &str| Some(EventKind::ThinkingDelta { text: text.into() });
        let table = [
            (DeltaPart::Text, "it is sk", [None, text("it is ")]),
            (DeltaPart::Text, "-cän", [None, None]),
            (DeltaPart::Text, "ary!", [None, text("[redacted]!")]),
            (DeltaPart::Text, " sk-", [None, text(" ")]),
            (DeltaPart::Thinking, "hm", [text("sk-"), thought("hm")]),
        ];
        for (part, piece, told) in table {
            assert_eq!(deltas.push(part, piece), told, "{piece}");
        }
        assert_eq!(deltas.finish(), None);
    }
}
