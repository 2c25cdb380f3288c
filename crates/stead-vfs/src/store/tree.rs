//! Moving and removing whole trees in the store. See `store/mod.rs` for the protocol.
//!
//! Effects: the clock, randomness, the store (writes).

use super::chunks::LeftoverChunks;
use super::error;
use super::node::{self, Chunks, FileNode};
use super::retry::RetryBackoff;
use super::{Committed, StoreVfs};
use crate::{PathError, VPath, VfsError, rebase};
use std::collections::HashMap;
use stead_store::{DocVersion, DocumentChange, Expected};

/// The number of changes in one commit that removes. A larger tree takes several, from the leaves
/// up.
const REMOVED_AT_ONCE: usize = 5000;
/// The maximum number of nodes of a tree that is moved, because a move is one commit.
const MAX_MOVED: usize = 100_000;

/// A node of a tree, with its stamp if it is a directory with entries.
#[derive(Debug)]
struct TreeNode {
    path: VPath,
    node: FileNode,
    stamp: Option<DocVersion>,
}

impl StoreVfs {
    pub(super) async fn remove_tree(&self, path: &VPath) -> Result<(), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::Denied(path.clone()));
        }
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            let mut parts = self.load_tree(path, usize::MAX).await?;
            // Leaves first, so that everything that remains after a crash has its directory.
            parts.reverse();
            if self.remove_nodes(path, &parts).await? == Committed::Applied {
                return Ok(());
            }
        }
        Err(error::contended(path))
    }

    async fn remove_nodes(&self, path: &VPath, parts: &[TreeNode]) -> Result<Committed, VfsError> {
        let mut changes = Vec::new();
        let mut left: Vec<Chunks> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let expect = Expected::Version(part.node.version);
            changes.push(DocumentChange::Delete {
                key: node::key(&part.path),
                expect,
            });
            if part.node.is_directory() {
                changes.push(match part.stamp {
                    Some(stamp) => DocumentChange::Delete {
                        key: node::stamp_key(&part.path),
                        expect: Expected::Version(stamp),
                    },
                    None => DocumentChange::Check {
                        key: node::stamp_key(&part.path),
                        expect: Expected::Absent,
                    },
                });
            }
            if let Some(chunks) = &part.node.meta.chunks {
                match self.release_chunks(path, chunks, &mut changes)? {
                    LeftoverChunks::Nothing => {}
                    LeftoverChunks::Chunks(chunks) => left.push(chunks),
                }
            }
            let is_last = number + 1 == parts.len();
            if !is_last && changes.len() < REMOVED_AT_ONCE {
                continue;
            }
            if self.commit(path, std::mem::take(&mut changes)).await? == Committed::Conflict {
                return Ok(Committed::Conflict);
            }
            for chunks in left.drain(..) {
                // The files are removed; what remains of them has its marker.
                let _ = self.remove_chunks(path, &chunks).await;
            }
        }
        Ok(Committed::Applied)
    }

    pub(super) async fn move_tree(&self, from: &VPath, to: &VPath) -> Result<(), VfsError> {
        node::check_length(from)?;
        node::check_length(to)?;
        if from.is_root() {
            return Err(VfsError::Denied(from.clone()));
        }
        let mut tries = RetryBackoff::default();
        while tries.next_try().await {
            let parts = self.load_tree(from, MAX_MOVED).await?;
            if from != to && from.contains(to) {
                return Err(rebase::into_itself(from));
            }
            if to.is_root() {
                return Err(VfsError::Denied(to.clone()));
            }
            // The parent of `from` exists, and moving onto it would name some keys twice.
            if to.contains(from) {
                return Err(VfsError::Exists(to.clone()));
            }
            let mut changes = move_changes(&parts, from, to)?;
            self.ensure_parents(to, &mut changes).await?;
            if self.commit(to, changes).await? == Committed::Applied {
                self.directory_versions.forget_above(from);
                return Ok(());
            }
            if self.find_node(to).await?.is_some() {
                return Err(VfsError::Exists(to.clone()));
            }
        }
        Err(error::contended(from))
    }

    /// Returns a node and everything below it, from the top down. Each stamp is read before the
    /// entries it stands for, so an unchanged stamp proves that they are complete.
    async fn load_tree(&self, path: &VPath, most: usize) -> Result<Vec<TreeNode>, VfsError> {
        let Some(node) = self.find_node(path).await? else {
            return Err(self.not_found_error(path).await?);
        };
        let is_directory = node.is_directory();
        let mut parts = vec![TreeNode {
            path: path.clone(),
            node,
            stamp: None,
        }];
        let mut stamps: HashMap<VPath, DocVersion> = HashMap::new();
        for depth in node::depth(path) + 1.. {
            if !is_directory {
                break;
            }
            let (nodes, met) = self
                .list_level(path, &node::level_below(path, depth), None, usize::MAX)
                .await?;
            stamps.extend(met);
            if nodes.is_empty() {
                break;
            }
            parts.extend(nodes.into_iter().map(|(path, node)| TreeNode {
                path,
                node,
                stamp: None,
            }));
            if parts.len() > most {
                let size = parts.len() as u64;
                let limit = most as u64;
                return Err(VfsError::TooLarge {
                    path: path.clone(),
                    size,
                    limit,
                });
            }
        }
        for part in &mut parts {
            part.stamp = stamps.get(&part.path).copied();
        }
        Ok(parts)
    }
}

fn move_changes(
    parts: &[TreeNode],
    from: &VPath,
    to: &VPath,
) -> Result<Vec<DocumentChange>, VfsError> {
    let mut changes = Vec::new();
    for TreeNode { path, node, stamp } in parts {
        let rest = path.as_str().get(from.as_str().len()..).unwrap_or_default();
        let target = VPath::parse(&format!("{to}{rest}"))?;
        if target.as_str().len() > node::MAX_PATH_BYTES {
            return Err(PathError::TooLong.into());
        }
        changes.push(DocumentChange::Move {
            from: node::key(path),
            to: node::key(&target),
            version: node.version,
        });
        if node.is_directory() {
            let key = node::stamp_key(path);
            changes.push(match *stamp {
                Some(version) => DocumentChange::Move {
                    from: key,
                    to: node::stamp_key(&target),
                    version,
                },
                None => DocumentChange::Check {
                    key,
                    expect: Expected::Absent,
                },
            });
        }
    }
    Ok(changes)
}
