//! Detects tool output that shows records of other sessions. A search that starts above the folder
//! of the records finds them, too, and untrusted content of one session must not become trusted in
//! another.
//!
//! Effects: the journal (reads).

use super::command_source::{FileRead, ReadExtent};
use std::collections::BTreeSet;
use stead_core::{Block, SessionId, TaintOrigin, recorded_taint};
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

    /// Returns the origins of untrusted content in the records that a call reads at `path`.
    pub(crate) async fn taint_of(
        &self,
        read: &FileRead,
        sessions: &dyn Sessions,
    ) -> Vec<TaintOrigin> {
        let path = &read.path;
        let Some(rest) = self.folders.iter().find_map(|folder| below(folder, path)) else {
            return Vec::new();
        };
        match (record_of(rest), read.extent) {
            (Record::Plain, _) => Vec::new(),
            // The lines that a search in a folder shows are found by their paths.
            (Record::Folder, ReadExtent::File | ReadExtent::ShownLines) => Vec::new(),
            // The output of a command need not say which files its lines are from.
            (Record::Folder, ReadExtent::Children | ReadExtent::Below) => {
                vec![TaintOrigin::Unknown]
            }
            (Record::Unknown, _) => vec![TaintOrigin::Unknown],
            (Record::Session(id), _) => {
                let origin = taint_of_session(sessions, &id).await;
                origin.into_iter().collect()
            }
        }
    }

    /// Returns the origins of untrusted content in an output that shows lines from records.
    pub(crate) async fn taint_shown_in(
        &self,
        content: &[Block],
        sessions: &dyn Sessions,
    ) -> Vec<TaintOrigin> {
        let mut seen = BTreeSet::new();
        let mut origins = Vec::new();
        for record in self.shown_in(content) {
            match record {
                // A record of no known session may hold anything.
                None => return vec![TaintOrigin::Unknown],
                Some(id) if seen.insert(id.clone()) => {
                    origins.extend(taint_of_session(sessions, &id).await);
                }
                Some(_) => {}
            }
        }
        origins
    }

    /// Returns the sessions whose records have lines (`path:…`) in an output; `None` for a record
    /// of no known session.
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
            let line = line.strip_prefix("./").unwrap_or(line);
            let rest = starts
                .iter()
                .find_map(|start| line.strip_prefix(start.as_str()))?;
            // The heading of a folder in a listing has nothing after it.
            let (path, _) = rest.split_once(':').filter(|(_, text)| !text.is_empty())?;
            match record_of(path) {
                Record::Plain => None,
                Record::Session(id) => Some(Some(id)),
                Record::Folder | Record::Unknown => Some(None),
            }
        });
        found.collect()
    }
}

/// What a path among the records is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Record {
    /// Part of the record of a session: as trusted as that session.
    Session(SessionId),
    /// A list with titles that people typed, or with numbers: trusted.
    Plain,
    /// A folder. Lines of files in it are judged by their own paths.
    Folder,
    /// Anything else: untrusted.
    Unknown,
}

/// Returns what a path below a folder of records is: `<agent>/sessions/<id>.log.jsonl`,
/// `<agent>/offload/<id>/…` and so on. The names are those that stead-store's `FileSessions` and the
/// offloading of long results give.
fn record_of(path: &str) -> Record {
    let mut names = path.split('/').skip(1);
    let session = |id: &str| SessionId::new(id).map_or(Record::Unknown, Record::Session);
    let kind = names.next();
    let name = names.next();
    match (kind, name) {
        (Some("sessions"), Some("sessions.jsonl")) | (Some("token_usage.jsonl"), None) => {
            Record::Plain
        }
        (Some("sessions"), Some(name)) => match name.strip_suffix(".log.jsonl") {
            Some(id) => session(id),
            None => Record::Unknown,
        },
        (Some("tasks"), Some(name)) => match name.strip_suffix(".json") {
            Some(id) => session(id),
            None => Record::Unknown,
        },
        (Some("offload" | "context" | "subagents"), Some(id)) => session(id),
        (Some("sessions" | "offload" | "context" | "subagents" | "tasks"), None) => Record::Folder,
        (None, None) if !path.contains('.') => Record::Folder,
        (_, _) => Record::Unknown,
    }
}

/// Returns the part of `path` below `folder`; none if it is not inside.
fn below<'a>(folder: &VPath, path: &'a VPath) -> Option<&'a str> {
    let rest = path.as_str().strip_prefix(folder.as_str())?;
    match rest.is_empty() {
        true => Some(rest),
        false => rest.strip_prefix('/'),
    }
}

/// Returns the origin if a session took in untrusted content, or cannot be read.
async fn taint_of_session(sessions: &dyn Sessions, id: &SessionId) -> Option<TaintOrigin> {
    let is_tainted = match sessions.read(id).await {
        Ok(lines) => !recorded_taint(&lines, u64::MAX).is_empty(),
        Err(_) => true,
    };
    is_tainted.then(|| TaintOrigin::Session { id: id.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_told_by_their_paths() {
        let id = |text: &str| Record::Session(SessionId::new(text).unwrap());
        let table = [
            ("main/sessions/s1.log.jsonl", id("s1")),
            ("main/offload/s1/c1.txt", id("s1")),
            ("main/context/s1/agent_state.json", id("s1")),
            ("main/subagents/s1/files/a.md", id("s1")),
            ("main/tasks/s1.json", id("s1")),
            ("main/sessions/sessions.jsonl", Record::Plain),
            ("main/token_usage.jsonl", Record::Plain),
            ("", Record::Folder),
            ("main", Record::Folder),
            ("main/sessions", Record::Folder),
            ("conv_2026.md", Record::Unknown),
            ("main/state/x", Record::Unknown),
        ];
        for (path, record) in table {
            assert_eq!(record_of(path), record, "{path}");
        }
    }
}
