//! Taking back what a run changed.
//!
//! A run's log says of every path what was there before and after each operation. Undo looks only at the
//! first and the last of these: where the file is still what the run left, it becomes again what it was.
//! Where it is anything else, someone else changed it since, and nothing at all is undone.

use crate::{Agent, AgentError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stead_core::{Entry, Owner, RunId, SessionId};
use stead_store::{ChangeLog, RunKey, Wait};
use stead_vfs::{ChangeRecord, ContentHash, Expect, FileKind, ReadRange, VPath, Version, Vfs, VfsError, Was};

/// What undoing would do.
#[derive(Debug, Default)]
pub struct UndoPlan {
    /// What would be done, in the order of paths.
    pub steps: Vec<UndoStep>,
    /// Why it cannot be done.
    pub obstacles: Vec<Obstacle>,
    runs: Vec<RunKey>,
}

/// One path that would be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoStep {
    /// The path.
    pub path: VPath,
    /// What would happen to it.
    pub action: UndoAction,
}

/// What happens to a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoAction {
    /// A file gets the content it had.
    Restore {
        /// The content's hash.
        hash: String,
        /// Its permission bits, where known.
        mode: Option<u32>,
        /// The version that is there now, if a file is.
        over: Option<Version>,
    },
    /// A file that the run made goes.
    Remove,
    /// A directory that the run removed comes back.
    MakeDirectory,
    /// A directory that the run made goes, if it is empty by then.
    RemoveDirectory,
}

/// Why a path cannot be put back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Obstacle {
    /// It is not what the run left.
    #[error("{0} was changed since, by someone else")]
    Changed(VPath),
    /// What was there before was not kept.
    #[error("{path} cannot be put back: {reason}")]
    Unkept {
        /// The path.
        path: VPath,
        /// Why.
        reason: String,
    },
}

/// The files and the log that undo works with.
#[derive(Debug)]
pub struct Undo {
    files: Arc<dyn Vfs>,
    log: Arc<dyn ChangeLog>,
}

impl Agent {
    /// Undo for a session of `owner`.
    pub fn undo(&self, owner: &Owner, session: &SessionId) -> Undo {
        let place = &self.parts.place;
        Undo { files: place.files(owner, session, None), log: place.changes(owner) }
    }

    /// Takes back what `runs` of a session changed, while nobody else works on it. Nothing is changed if the
    /// plan has obstacles.
    pub async fn undo_runs(&self, owner: &Owner, session: &SessionId, runs: &[RunId]) -> Result<UndoPlan, AgentError> {
        let opened = self.parts.place.sessions(owner).open(session, None, Wait::No).await?;
        let undo = self.undo(owner, session);
        let plan = undo.plan(session, runs).await;
        let undone = match plan {
            Ok(plan) if plan.obstacles.is_empty() => undo.apply(&plan).await.map(|()| plan),
            planned => planned,
        };
        opened.writer.close().await;
        undone
    }

    /// The runs of a session that began after entry `seq`, oldest first.
    pub async fn runs_after(&self, owner: &Owner, session: &SessionId, seq: u64) -> Result<Vec<RunId>, AgentError> {
        let lines = self.parts.place.sessions(owner).read(session).await?;
        let inputs = lines.into_iter().filter(|line| line.seq > seq).filter_map(|line| match line.entry {
            Entry::User(input) => Some(input.run),
            _ => None,
        });
        Ok(inputs.collect())
    }
}

impl Undo {
    /// The newest run that changed something, of one session or of any.
    pub async fn newest(&self, session: Option<&SessionId>) -> Result<Option<RunKey>, AgentError> {
        let mut runs = self.log.runs().await?.into_iter().map(|run| run.key);
        Ok(runs.rfind(|key| session.is_none_or(|session| key.session == *session)))
    }

    /// The run whose id begins with `text`, if there is exactly one that changed something.
    pub async fn find(&self, text: &str) -> Result<Vec<RunKey>, AgentError> {
        let runs = self.log.runs().await?.into_iter().map(|run| run.key);
        Ok(runs.filter(|key| key.run.as_str().starts_with(text)).collect())
    }

    /// What undoing `runs`, given oldest first, would do.
    pub async fn plan(&self, session: &SessionId, runs: &[RunId]) -> Result<UndoPlan, AgentError> {
        let runs: Vec<RunKey> = runs.iter().map(|run| RunKey { session: session.clone(), run: run.clone() }).collect();
        let mut records = Vec::new();
        for run in &runs {
            for line in self.log.records(run).await? {
                let record = serde_json::from_str(&line).map_err(|cause| stead_store::StoreError::Corrupt {
                    place: format!("the changes of run {}", run.run),
                    cause: cause.to_string(),
                })?;
                records.push(record);
            }
        }
        let mut plan = UndoPlan { runs, ..UndoPlan::default() };
        for (path, (before, after)) in net(&records) {
            let path = VPath::parse(&path).map_err(VfsError::from)?;
            self.consider(&mut plan, path, before, after).await?;
        }
        Ok(plan)
    }

    async fn consider(&self, plan: &mut UndoPlan, path: VPath, before: Was, after: Was) -> Result<(), AgentError> {
        let (now, version) = self.now(&path).await?;
        let action = match (before, after) {
            (before, _) if same(&before, &now) => return Ok(()),
            (Was::Unkept(reason), _) => {
                plan.obstacles.push(Obstacle::Unkept { path, reason });
                return Ok(());
            }
            // Others may have put something into it, or removed it: neither is ours to judge.
            (Was::Absent, Was::Directory) if now == Was::Directory => UndoAction::RemoveDirectory,
            (Was::Absent, Was::Directory) => return Ok(()),
            (Was::Directory, _) if now == Was::Absent => UndoAction::MakeDirectory,
            (_, after) if !same(&after, &now) => {
                plan.obstacles.push(Obstacle::Changed(path));
                return Ok(());
            }
            (Was::Absent, _) => UndoAction::Remove,
            (Was::Directory, _) => UndoAction::MakeDirectory,
            (Was::File { hash, mode }, _) => {
                let whole = self.image(&hash).await?.is_some();
                if !whole {
                    let reason = "its earlier content is no longer kept".to_owned();
                    plan.obstacles.push(Obstacle::Unkept { path, reason });
                    return Ok(());
                }
                UndoAction::Restore { hash, mode, over: version }
            }
        };
        plan.steps.push(UndoStep { path, action });
        Ok(())
    }

    /// The content that a step would restore; none if it is not kept, or not whole.
    pub async fn image(&self, hash: &str) -> Result<Option<Bytes>, AgentError> {
        let image = self.log.image(hash).await?;
        Ok(image.filter(|image| ContentHash::of(image).to_string() == hash))
    }

    /// The content of a file as it is now; none if there is none.
    pub async fn current(&self, path: &VPath) -> Result<Option<Bytes>, AgentError> {
        match self.files.read(path, ReadRange::ALL).await {
            Ok((content, _)) => Ok(Some(content)),
            Err(VfsError::NotFound(_) | VfsError::IsDirectory(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Does what the plan says, and forgets the runs' changes. Stopped half-way, it can be done again.
    pub async fn apply(&self, plan: &UndoPlan) -> Result<(), AgentError> {
        let steps = |wanted: fn(&UndoAction) -> bool| plan.steps.iter().filter(move |step| wanted(&step.action));
        // What was made goes first: a file may stand where a directory was.
        for step in steps(|action| *action == UndoAction::Remove) {
            self.files.remove(&step.path).await?;
        }
        for step in steps(|action| *action == UndoAction::RemoveDirectory).collect::<Vec<_>>().into_iter().rev() {
            if self.files.list(&step.path).await.is_ok_and(|entries| entries.is_empty()) {
                self.files.remove(&step.path).await?;
            }
        }
        for step in steps(|action| *action == UndoAction::MakeDirectory) {
            self.files.mkdir(&step.path).await?;
        }
        for step in &plan.steps {
            let UndoAction::Restore { hash, mode, over } = &step.action else { continue };
            let Some(content) = self.image(hash).await? else { continue };
            let expect = over.clone().map_or(Expect::Absent, Expect::Version);
            self.files.write(&step.path, content, expect).await?;
            if let Some(mode) = mode {
                self.files.set_mode(&step.path, *mode).await?;
            }
        }
        for run in &plan.runs {
            self.log.forget(run).await?;
        }
        Ok(())
    }

    async fn now(&self, path: &VPath) -> Result<(Was, Option<Version>), AgentError> {
        let stat = match self.files.stat(path).await {
            Ok(stat) => stat,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => return Ok((Was::Absent, None)),
            Err(error) => return Err(error.into()),
        };
        Ok(match stat.kind {
            FileKind::Directory => (Was::Directory, None),
            FileKind::Other => (Was::Unkept("it is not a regular file".to_owned()), None),
            FileKind::File => {
                let (content, version) = self.files.read(path, ReadRange::ALL).await?;
                let hash = ContentHash::of(&content).to_string();
                (Was::File { hash, mode: stat.mode }, Some(version))
            }
        })
    }
}

/// What was at each path before the first change and after the last.
fn net(records: &[ChangeRecord]) -> BTreeMap<String, (Was, Was)> {
    let void: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| match record {
            ChangeRecord::Void { id } => Some(id.as_str()),
            ChangeRecord::Change { .. } => None,
        })
        .collect();
    let mut net: BTreeMap<String, (Was, Was)> = BTreeMap::new();
    for record in records {
        let ChangeRecord::Change { id, paths } = record else { continue };
        if void.contains(id.as_str()) {
            continue;
        }
        for change in paths {
            let entry = net.entry(change.path.clone());
            let first = entry.or_insert_with(|| (change.before.clone(), change.after.clone()));
            first.1 = change.after.clone();
        }
    }
    net
}

/// Whether two states are the same for a person: content counts, permission bits where both are known.
fn same(a: &Was, b: &Was) -> bool {
    match (a, b) {
        (Was::File { hash: a, mode: m }, Was::File { hash: b, mode: n }) => {
            a == b && (m.is_none() || n.is_none() || m.map(|m| m & 0o777) == n.map(|n| n & 0o777))
        }
        (Was::Absent, Was::Absent) | (Was::Directory, Was::Directory) => true,
        (Was::Absent | Was::Directory | Was::File { .. } | Was::Unkept(_), _) => false,
    }
}
