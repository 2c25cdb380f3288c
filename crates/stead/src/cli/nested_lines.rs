//! Nested calls in transcripts. The conversation has only the calls of the model, so they are read
//! from the journal.
//!
//! Effects: none.

use super::render::{call_line, nested_indent};
use super::style::Style;
use std::collections::BTreeMap;
use stead::core::{Entry, JournalLine, NestedCall, NestedId, ResultStatus};

/// The nested calls of a journal, by the call of the model they belong to.
pub(crate) struct NestedLines<'a>(BTreeMap<&'a str, Vec<NestedLine<'a>>>);

struct NestedLine<'a> {
    id: &'a str,
    call: &'a NestedCall,
    /// How it ended; absent while it waits or runs.
    status: Option<ResultStatus>,
}

impl<'a> NestedLines<'a> {
    /// Collects the nested calls of a journal.
    pub(crate) fn new(lines: &'a [JournalLine]) -> Self {
        let mut all = BTreeMap::<&str, Vec<NestedLine<'a>>>::new();
        for line in lines {
            let Some(id) = entry_call(&line.entry).filter(|id| NestedId::parse(id).is_some())
            else {
                continue;
            };
            let of_top = all.entry(NestedId::top_of(id)).or_default();
            if let Some(call) = introduced(&line.entry) {
                let status = None;
                of_top.push(NestedLine { id, call, status });
            }
            if let Entry::Result(result) = &line.entry
                && let Some(known) = of_top.iter_mut().rev().find(|known| known.id == id)
            {
                known.status = Some(result.status);
            }
        }
        for of_top in all.values_mut() {
            of_top.sort_by_cached_key(|line| ordinals(line.id));
        }
        Self(all)
    }

    /// Returns the calls below the call `id` of the model, a line each, below the call that made
    /// them.
    pub(crate) fn render(&self, id: &str, style: Style) -> String {
        let lines = self.0.get(id).map(Vec::as_slice).unwrap_or_default();
        lines.iter().map(|line| line.render(style)).collect()
    }
}

impl NestedLine<'_> {
    fn render(&self, style: Style) -> String {
        let call = call_line(&self.call.name, &self.call.args);
        let indent = nested_indent(self.id);
        let (mark, note) = match self.status {
            Some(ResultStatus::Ok) => (style.good("✓"), String::new()),
            Some(status) => (style.bad("✗"), format!(" ({})", status.as_str())),
            None => (style.warn("…"), " (no result yet)".to_owned()),
        };
        format!("{indent}{mark} {}\n", style.dim(&format!("{call}{note}")))
    }
}

/// Returns the id of the call that an entry is about.
pub(crate) fn entry_call(entry: &Entry) -> Option<&str> {
    match entry {
        Entry::Call(intent) => Some(&intent.id),
        Entry::Result(result) => Some(&result.id),
        Entry::Ask(ask) => Some(&ask.id),
        Entry::Decision(decision) => Some(&decision.id),
        Entry::Hook(hook) => hook.call.as_deref(),
        Entry::Session(_)
        | Entry::User(_)
        | Entry::Model(_)
        | Entry::Notice(_)
        | Entry::Steer(_)
        | Entry::Set(_)
        | Entry::Pin(_)
        | Entry::Compaction(_)
        | Entry::Sent(_)
        | Entry::Rewind(_)
        | Entry::End(_) => None,
    }
}

/// Returns what a nested call is, if this is the first entry about it.
fn introduced(entry: &Entry) -> Option<&NestedCall> {
    match entry {
        Entry::Call(intent) => intent.nested.as_ref(),
        Entry::Result(result) => result.nested.as_ref(),
        Entry::Ask(ask) => ask.nested.as_ref(),
        Entry::Hook(hook) => hook.nested.as_ref(),
        Entry::Session(_)
        | Entry::User(_)
        | Entry::Model(_)
        | Entry::Decision(_)
        | Entry::Notice(_)
        | Entry::Steer(_)
        | Entry::Set(_)
        | Entry::Pin(_)
        | Entry::Compaction(_)
        | Entry::Sent(_)
        | Entry::Rewind(_)
        | Entry::End(_) => None,
    }
}

/// Returns the ordinals in an id, which sort calls as they were made.
fn ordinals(id: &str) -> Vec<u32> {
    let parts = id.split('/').skip(1);
    parts.filter_map(|part| part.parse().ok()).collect()
}
