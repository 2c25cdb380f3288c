//! What was received of a reply of the model that was cut off. The person has read it, so it stays
//! part of the conversation, marked as cut off.
//!
//! Effects: none.

use super::signals::HaltReason;
use super::stop::RunStop;
use stead_core::{Block, Entry, ModelReply, Notice, NoticeKind, RunId, StopReason, Usage, Usd};
use stead_model::Delta;

/// Whether a part of a reply was received: only then does the call cost anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Received {
    #[default]
    Nothing,
    Something,
}

/// A reply as far as it was received.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    received: Received,
    text: String,
    /// The tools whose calls were being written.
    calls: Vec<String>,
    usage: Option<Usage>,
    /// The text of the newest attempt before this one that had any.
    earlier_text: String,
}

impl PartialReply {
    pub(super) fn add(&mut self, delta: &Delta) {
        self.received = Received::Something;
        match delta {
            Delta::Text(text) => self.text.push_str(text),
            Delta::CallStarted { name, .. } => self.calls.push(name.clone()),
            Delta::Usage(usage) => self.usage = Some(*usage),
            Delta::Thinking(_) | Delta::CallArgs { .. } | Delta::Done(_) => {}
            Delta::Retry { .. } => self.begin_again(),
        }
    }

    fn begin_again(&mut self) {
        let before = std::mem::take(self);
        self.earlier_text = match before.text.trim().is_empty() {
            true => before.earlier_text,
            false => before.text,
        };
    }

    pub(super) fn received(&self) -> Received {
        self.received
    }

    /// Returns the tokens that the provider has counted, as far as it said so.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// Returns the entries that keep it: the text, and the note for the model that it was cut off
    /// for this reason. There are none if nothing was said and nothing counted.
    pub(super) fn into_entries(
        self,
        run: &RunId,
        model: &str,
        cost: Option<Usd>,
        reason: &str,
    ) -> Vec<Entry> {
        let text = match self.text.trim().is_empty() {
            true => self.earlier_text,
            false => self.text,
        };
        let has_text = !text.trim().is_empty();
        if !has_text && self.usage.is_none() {
            return Vec::new();
        }
        let reply = Entry::Model(ModelReply {
            run: run.clone(),
            model: model.to_owned(),
            content: has_text.then(|| Block::text(text)).into_iter().collect(),
            usage: self.usage.unwrap_or_default(),
            cost,
            stop: StopReason::CutOff,
        });
        let note = has_text.then(|| {
            let text = cut_note(reason, &self.calls);
            Entry::Notice(Notice::new(run.clone(), NoticeKind::CutOff, text))
        });
        [reply].into_iter().chain(note).collect()
    }
}

/// Returns the note for the model about an answer that was cut off.
fn cut_note(reason: &str, calls: &[String]) -> String {
    let mut note = format!("[Your answer above was cut off: {reason}.");
    if !calls.is_empty() {
        note.push_str(&format!(
            " You were writing a call of {}; it was not made.",
            calls.join(", ")
        ));
    }
    note.push(']');
    note
}

/// Returns why an answer was cut off, in words; nothing if it cannot be put on record.
pub(super) fn cut_reason(stop: &RunStop) -> Option<String> {
    match stop {
        RunStop::Halted(HaltReason::Cancelled) => Some("the person stopped the run".to_owned()),
        RunStop::Halted(HaltReason::Interrupted) => Some("a new message came".to_owned()),
        RunStop::Halted(HaltReason::TimedOut) => Some("the run reached its time limit".to_owned()),
        RunStop::Model(error) => Some(error.to_string().trim_end_matches('.').to_owned()),
        RunStop::Budget(_) => Some("the budget is used up".to_owned()),
        // Another process writes the journal now.
        RunStop::Halted(HaltReason::TakenOver) | RunStop::Fatal(_) => None,
        RunStop::Tool(_) | RunStop::Hook(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(deltas: &[Delta]) -> PartialReply {
        let mut partial = PartialReply::default();
        deltas.iter().for_each(|delta| partial.add(delta));
        partial
    }

    /// The text and the note of what is kept.
    fn kept(deltas: &[Delta]) -> Option<(String, Option<String>)> {
        let run = RunId::new("r1").unwrap();
        let entries = after(deltas).into_entries(&run, "test:m", None, "why");
        let mut text = None;
        let mut note = None;
        for entry in entries {
            match entry {
                Entry::Model(reply) => {
                    assert_eq!(reply.stop, StopReason::CutOff);
                    text = Some(reply.content.iter().filter_map(Block::as_text).collect());
                }
                Entry::Notice(notice) => note = Some(notice.text),
                other => panic!("{other:?}"),
            }
        }
        text.map(|text| (text, note))
    }

    #[test]
    fn the_words_are_kept_with_a_note_and_a_retry_without_words_does_not_lose_them() {
        let text = |text: &str| Delta::Text(text.to_owned());
        let retry = || Delta::Retry {
            attempt: 2,
            wait_ms: 0,
            reason: String::new(),
        };
        let call = || Delta::CallStarted {
            index: 0,
            name: "ls".to_owned(),
        };
        let usage = Usage {
            input_tokens: 5,
            ..Usage::default()
        };
        let cut = "[Your answer above was cut off: why.]";
        let cut_call =
            "[Your answer above was cut off: why. You were writing a call of ls; it was not made.]";
        type Kept<'a> = Option<(&'a str, Option<&'a str>)>;
        let table: [(&[Delta], Kept<'_>); 8] = [
            (&[], None),
            (&[Delta::Thinking("hm".to_owned())], None),
            (&[text(" \n")], None),
            (&[call()], None),
            (&[text("one "), text("two")], Some(("one two", Some(cut)))),
            (&[text("one"), call()], Some(("one", Some(cut_call)))),
            (&[text("one"), retry(), retry()], Some(("one", Some(cut)))),
            (&[Delta::Usage(usage)], Some(("", None))),
        ];
        for (deltas, want) in table {
            let want = want.map(|(text, note)| (text.to_owned(), note.map(str::to_owned)));
            assert_eq!(kept(deltas), want, "{deltas:?}");
        }
        assert_eq!(
            kept(&[text("one"), retry(), text("two")]),
            Some(("two".to_owned(), Some(cut.to_owned())))
        );
    }

    #[test]
    fn only_what_was_received_since_the_last_retry_is_charged() {
        let text = || Delta::Text("a".to_owned());
        let retry = Delta::Retry {
            attempt: 2,
            wait_ms: 0,
            reason: String::new(),
        };
        assert_eq!(after(&[]).received(), Received::Nothing);
        assert_eq!(after(&[text()]).received(), Received::Something);
        assert_eq!(after(&[text(), retry]).received(), Received::Nothing);
    }
}
