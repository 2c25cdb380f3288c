//! Whether an output shows what is on record of sessions. A search that begins above the records
//! finds them, too, and what came from outside into one session must not become another's own.

use crate::Agent;
use std::collections::BTreeSet;
use stead_core::{Block, Entry, SessionId};
use stead_store::Sessions;
use stead_vfs::VPath;

impl Agent {
    /// Where it is on record what was said in sessions.
    pub(crate) fn record_folders(&self) -> Vec<VPath> {
        let tree = &self.parts.workspace.definition.paths;
        tree.runtime
            .join("agents")
            .ok()
            .into_iter()
            .chain(tree.conversations.clone())
            .collect()
    }

    /// Whether an output shows lines that were found in the records of a session with words from
    /// outside.
    pub(crate) async fn shows_untrusted_records(
        &self,
        sessions: &dyn Sessions,
        content: &[Block],
    ) -> bool {
        let mut seen = BTreeSet::new();
        for record in self.shown_records(content) {
            // What nobody can tell the session of may be anybody's words.
            let Some(id) = record else { return true };
            if seen.insert(id.clone()) && is_tainted(sessions, &id).await {
                return true;
            }
        }
        false
    }

    /// The sessions whose records have lines (`path:number:…`) in an output; none for a record of
    /// no known session.
    fn shown_records(&self, content: &[Block]) -> Vec<Option<SessionId>> {
        let starts: Vec<String> = self
            .record_folders()
            .iter()
            .map(|records| format!("{records}/"))
            .collect();
        let texts = content.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
        });
        let found = texts.flat_map(str::lines).filter_map(|line| {
            let rest = starts
                .iter()
                .find_map(|start| line.strip_prefix(start.as_str()))?;
            let (path, number) = rest.split_once(':')?;
            // Titles are what people typed, and numbers are no words.
            let plain = path.ends_with("/sessions.json") || path.ends_with("/token_usage.jsonl");
            (number.starts_with(|c: char| c.is_ascii_digit()) && !plain).then(|| session_of(path))
        });
        found.collect()
    }
}

/// The session of `<agent>/sessions/<id>.log.jsonl`, `<agent>/offload/<id>/…`.
fn session_of(path: &str) -> Option<SessionId> {
    let mut names = path.split('/').skip(1);
    let kind = names.next()?;
    let name = names.next()?;
    let id = match kind {
        "sessions" => name.strip_suffix(".log.jsonl")?,
        "offload" | "context" => name,
        _ => return None,
    };
    SessionId::new(id).ok()
}

/// Whether words from outside ever came into a session; one that cannot be read may have had some.
async fn is_tainted(sessions: &dyn Sessions, id: &SessionId) -> bool {
    let Ok(lines) = sessions.read(id).await else {
        return true;
    };
    lines
        .iter()
        .any(|line| matches!(&line.entry, Entry::Result(result) if result.untrusted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_by_their_paths() {
        let id = |text: &str| SessionId::new(text).ok();
        let table = [
            ("main/sessions/s1.log.jsonl", id("s1")),
            ("main/offload/s1/c1.txt", id("s1")),
            ("main/context/s1/agent_state.json", id("s1")),
            ("main/sessions/sessions.json", None),
            ("main/token_usage.jsonl", None),
            ("conv_2026.md", None),
        ];
        for (path, session) in table {
            assert_eq!(session_of(path), session, "{path}");
        }
    }
}
