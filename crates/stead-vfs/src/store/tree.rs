//! Moving and removing, with all that is below.

use super::chunks::Left;
use super::error;
use super::node::{self, Chunks, Node};
use super::tries::Tries;
use super::{Committed, StoreVfs};
use crate::{PathError, VPath, VfsError, relocate};
use std::collections::HashMap;
use stead_store::{Change, DocVersion, Expected};

/// Changes of one commit that removes. A larger tree goes in several, from the leaves up.
const REMOVED_AT_ONCE: usize = 5000;
/// Most nodes of a tree that is moved, for it is moved in one commit.
const MAX_MOVED: usize = 100_000;

/// A node of a tree, and the stamp it has if it is a directory with entries.
#[derive(Debug)]
struct Part {
    path: VPath,
    node: Node,
    stamp: Option<DocVersion>,
}

impl StoreVfs {
    pub(super) async fn remove_tree(&self, path: &VPath) -> Result<(), VfsError> {
        node::check_length(path)?;
        if path.is_root() {
            return Err(VfsError::Denied(path.clone()));
        }
        let mut tries = Tries::default();
        while tries.again().await {
            let mut parts = self.tree(path, usize::MAX).await?;
            // Leaves first: whatever stays after a crash has its directory.
            parts.reverse();
            if self.remove_parts(path, &parts).await? == Committed::Made {
                return Ok(());
            }
        }
        Err(error::contended(path))
    }

    async fn remove_parts(&self, path: &VPath, parts: &[Part]) -> Result<Committed, VfsError> {
        let mut changes = Vec::new();
        let mut left: Vec<Chunks> = Vec::new();
        for (number, part) in parts.iter().enumerate() {
            let expect = Expected::Version(part.node.version);
            changes.push(Change::Delete {
                key: node::key(&part.path),
                expect,
            });
            if part.node.is_directory() {
                changes.push(match part.stamp {
                    Some(stamp) => Change::Delete {
                        key: node::stamp_key(&part.path),
                        expect: Expected::Version(stamp),
                    },
                    None => Change::Check {
                        key: node::stamp_key(&part.path),
                        expect: Expected::Absent,
                    },
                });
            }
            if let Some(chunks) = &part.node.meta.chunks {
                match self.give_up(path, chunks, &mut changes)? {
                    Left::Nothing => {}
                    Left::Chunks(chunks) => left.push(chunks),
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
                // The files are gone; what stays of them has its marker.
                let _ = self.erase(path, &chunks).await;
            }
        }
        Ok(Committed::Made)
    }

    pub(super) async fn move_tree(&self, from: &VPath, to: &VPath) -> Result<(), VfsError> {
        node::check_length(from)?;
        node::check_length(to)?;
        if from.is_root() {
            return Err(VfsError::Denied(from.clone()));
        }
        let mut tries = Tries::default();
        while tries.again().await {
            let parts = self.tree(from, MAX_MOVED).await?;
            if from != to && from.contains(to) {
                return Err(relocate::into_itself(from));
            }
            if to.is_root() {
                return Err(VfsError::Denied(to.clone()));
            }
            // What `from` is in is there, and a move onto it would name some keys twice.
            if to.contains(from) {
                return Err(VfsError::Exists(to.clone()));
            }
            let mut changes = moves(&parts, from, to)?;
            self.anchor(to, &mut changes).await?;
            if self.commit(to, changes).await? == Committed::Made {
                self.known.forget_above(from);
                return Ok(());
            }
            if self.look(to).await?.is_some() {
                return Err(VfsError::Exists(to.clone()));
            }
        }
        Err(error::contended(from))
    }

    /// A node and all below it, from the top down. Each stamp is read before the entries it stands
    /// for, so that one which still is the same proves that they are all.
    async fn tree(&self, path: &VPath, most: usize) -> Result<Vec<Part>, VfsError> {
        let Some(node) = self.look(path).await? else {
            return Err(self.missing(path).await?);
        };
        let is_directory = node.is_directory();
        let mut parts = vec![Part {
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
                .level(path, &node::level_below(path, depth), None, usize::MAX)
                .await?;
            stamps.extend(met);
            if nodes.is_empty() {
                break;
            }
            parts.extend(nodes.into_iter().map(|(path, node)| Part {
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

fn moves(parts: &[Part], from: &VPath, to: &VPath) -> Result<Vec<Change>, VfsError> {
    let mut changes = Vec::new();
    for Part { path, node, stamp } in parts {
        let rest = path.as_str().get(from.as_str().len()..).unwrap_or_default();
        let target = VPath::parse(&format!("{to}{rest}"))?;
        if target.as_str().len() > node::MAX_PATH_BYTES {
            return Err(PathError::TooLong.into());
        }
        changes.push(Change::Move {
            from: node::key(path),
            to: node::key(&target),
            version: node.version,
        });
        if node.is_directory() {
            let key = node::stamp_key(path);
            changes.push(match *stamp {
                Some(version) => Change::Move {
                    from: key,
                    to: node::stamp_key(&target),
                    version,
                },
                None => Change::Check {
                    key,
                    expect: Expected::Absent,
                },
            });
        }
    }
    Ok(changes)
}
