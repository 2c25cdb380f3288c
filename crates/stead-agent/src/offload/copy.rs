//! Copying offloaded files together with a session.
//!
//! Effects: the clock, workspace files (writes).

use super::session_folder;
use crate::{AgentError, Session};
use std::collections::BTreeSet;
use std::sync::Arc;
use stead_core::{
    Block, CallResult, Compaction, ContextView, Entry, Media, SessionId, Steer, UserInput,
};
use stead_vfs::{CopyAction, CopyPlan, Expect, Included, ReadRange, Scoped, VPath, Vfs, VfsError};

/// Copies the offloaded files of a session from the tree `from` to the tree `to`; `folder` is the
/// folder of the session in both. Returns the number of copied files.
pub async fn copy_offloaded(
    from: Arc<dyn Vfs>,
    to: Arc<dyn Vfs>,
    folder: &VPath,
) -> Result<usize, VfsError> {
    let from = Scoped::new(from, folder.clone());
    let to = Scoped::new(to, folder.clone());
    let mut plan = CopyPlan::new(&from, &to, &|_| Included::Yes).await?;
    // Files that only `to` has are kept: they may belong to a part of the session that `from` does
    // not have.
    plan.steps.retain(|step| step.action != CopyAction::Delete);
    let files = plan
        .steps
        .iter()
        .filter(|step| step.action != CopyAction::MakeDirectory)
        .count();
    plan.apply(&from, &to, &|_| {}).await?;
    Ok(files)
}

/// Returns `entries` of `session` as those of `fork`, and copies the files they name into the fork's
/// own folder: the fork must not lose them when `session` is removed.
pub(crate) async fn copy_entries(
    session: &Session,
    fork: &Session,
    entries: Vec<Entry>,
) -> Result<Vec<Entry>, AgentError> {
    let rename = FolderRename::new(session, fork.id())?;
    let names: BTreeSet<String> = entries
        .iter()
        .flat_map(|entry| rename.referenced_files(entry))
        .collect();
    if names.is_empty() {
        return Ok(entries);
    }
    let place = session.agent().place();
    let from = place.files(session.owner(), session.id(), None);
    let to = place.files(fork.owner(), fork.id(), None);
    for name in names {
        let source = rename.from.join(&name);
        let target = rename.to.join(&name);
        let source = source.map_err(VfsError::from)?;
        let target = target.map_err(VfsError::from)?;
        match from.read(&source, ReadRange::ALL).await {
            Ok((data, _)) => drop(to.write(&target, data, Expect::Any).await?),
            // A file that is missing in the original is missing in the fork, too.
            Err(VfsError::NotFound(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(entries
        .into_iter()
        .map(|entry| rename.rename_in_entry(entry))
        .collect())
}

/// Renames paths in the folder of one session to paths in the folder of another.
struct FolderRename {
    from: VPath,
    to: VPath,
}

impl FolderRename {
    fn new(session: &Session, fork: &SessionId) -> Result<Self, VfsError> {
        let workspace = session.agent().workspace();
        Ok(Self {
            from: session_folder(workspace, session.id())?,
            to: session_folder(workspace, fork)?,
        })
    }

    /// Returns the names of the offloaded files that an entry refers to, relative to the folder of
    /// the session.
    fn referenced_files(&self, entry: &Entry) -> Vec<String> {
        let prefix = format!("{}/", self.from);
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
        let named = |text: &str| -> Vec<String> {
            let after = text
                .match_indices(&prefix)
                .map(|(at, _)| &text[at + prefix.len()..]);
            let name = |rest: &str| {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                rest[..end].trim_end_matches('.').to_owned()
            };
            after.map(name).filter(|name| !name.is_empty()).collect()
        };
        let blocks = |content: &[Block]| -> Vec<String> {
            let texts = content.iter().filter_map(|block| match block {
                Block::Text { text } => Some(text.as_str()),
                Block::Media(media) => media.file.as_deref(),
                Block::Thinking(_) | Block::ToolCall(_) => None,
            });
            texts.flat_map(named).collect()
        };
        match entry {
            Entry::User(input) => blocks(&input.content),
            Entry::Steer(steer) => blocks(&steer.content),
            Entry::Result(result) => blocks(&result.content),
            Entry::Session(_)
            | Entry::Model(_)
            | Entry::Call(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Hook(_)
            | Entry::Compaction(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_) => Vec::new(),
        }
    }

    /// Returns the entry with its paths renamed. Messages of a model are not changed.
    fn rename_in_entry(&self, entry: Entry) -> Entry {
        match entry {
            Entry::User(input) => Entry::User(UserInput {
                content: self.rename_in_blocks(input.content),
                ..input
            }),
            Entry::Steer(steer) => Entry::Steer(Steer {
                content: self.rename_in_blocks(steer.content),
                ..steer
            }),
            Entry::Result(result) => Entry::Result(CallResult {
                content: self.rename_in_blocks(result.content),
                ..result
            }),
            Entry::Compaction(compaction) => {
                let summary = compaction
                    .view
                    .summary
                    .map(|summary| self.rename_in_text(&summary));
                let view = ContextView {
                    summary,
                    ..compaction.view
                };
                Entry::Compaction(Compaction { view, ..compaction })
            }
            other @ (Entry::Session(_)
            | Entry::Model(_)
            | Entry::Call(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_)) => other,
        }
    }

    fn rename_in_blocks(&self, content: Vec<Block>) -> Vec<Block> {
        let renamed = content.into_iter().map(|block| match block {
            Block::Text { text } => Block::text(self.rename_in_text(&text)),
            Block::Media(media) => {
                let file = media.file.as_deref().map(|file| self.rename_in_text(file));
                Block::Media(Media { file, ..media })
            }
            other @ (Block::Thinking(_) | Block::ToolCall(_)) => other,
        });
        renamed.collect()
    }

    fn rename_in_text(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.from), &format!("{}/", self.to))
    }
}
