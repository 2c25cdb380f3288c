//! Detects tool output that shows records of other sessions. A search that starts above the folder
//! of the records finds them, too, and untrusted content of one session must not become trusted in
//! another.

use std::collections::BTreeSet;
use stead_core::{Block, Entry, SessionId};
use stead_store::Sessions;
use stead_vfs::VPath;
use stead_workspace::WorkspacePaths;

/// The folders of a workspace that hold the records of sessions.
pub(crate) struct SessionRecords {
    folders: Vec<VPath>,
}

impl SessionRecords {
    pub(crate) fn new(paths: &WorkspacePaths) -> Self {
        let runtime = paths.runtime.join("agents").ok();
        Self {
            folders: runtime
                .into_iter()
                .chain(paths.conversations.clone())
                .collect(),
        }
    }

    /// Whether `path` is in one of the folders.
    pub(crate) fn contains(&self, path: &VPath) -> bool {
        self.folders.iter().any(|folder| folder.contains(path))
    }

    /// Whether an output shows lines from the records of a tainted session.
    pub(crate) async fn are_untrusted_in(
        &self,
        content: &[Block],
        sessions: &dyn Sessions,
    ) -> bool {
        let mut seen = BTreeSet::new();
        for record in self.shown_in(content) {
            // A record of no known session may hold anything.
            let Some(id) = record else { return true };
            if seen.insert(id.clone()) && is_tainted(sessions, &id).await {
                return true;
            }
        }
        false
    }

    /// Returns the sessions whose records have lines (`path:number:…`) in an output; `None` for a
    /// record of no known session.
    fn shown_in(&self, content: &[Block]) -> Vec<Option<SessionId>> {
        let starts: Vec<String> = self
            .folders
            .iter()
            .map(|folder| format!("{folder}/"))
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
            // Titles were typed by people, and usage lines hold numbers only.
            let plain = ["/sessions.jsonl", "/sessions.json", "/token_usage.jsonl"]
                .iter()
                .any(|name| path.ends_with(name));
            (number.starts_with(|c: char| c.is_ascii_digit()) && !plain).then(|| session_of(path))
        });
        found.collect()
    }
}

/// Returns the session of `<agent>/sessions/<id>.log.jsonl` or `<agent>/offload/<id>/…`.
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

/// Whether a session took in untrusted content, or cannot be read.
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
            ("main/sessions/sessions.jsonl", None),
            ("main/token_usage.jsonl", None),
            ("conv_2026.md", None),
        ];
        for (path, session) in table {
            assert_eq!(session_of(path), session, "{path}");
        }
    }
}
