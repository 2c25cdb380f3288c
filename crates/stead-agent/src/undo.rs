//! Taking back what a run changed.
//!
//! A run's log says of every path what was there before and after each operation. Undo looks only
//! at the first and the last of these: where the file is still what the run left, it becomes again
//! what it was. Where it is anything else, someone else changed it since, and nothing at all is
//! undone.

use crate::{Agent, AgentError};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stead_core::{Entry, Owner, ResultStatus, RunId, SessionId};
use stead_store::{LockWait, RunKey, UndoLog};
use stead_vfs::{
    ChangeRecord, ContentHash, Expect, FileKind, FileState, ReadRange, VPath, Version, Vfs,
    VfsError,
};

/// What undoing would do.
#[derive(Debug, Default)]
pub struct UndoPlan {
    /// What would be done, in the order of paths.
    pub steps: Vec<UndoStep>,
    /// Why it cannot be done.
    pub obstacles: Vec<UndoObstacle>,
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
pub enum UndoObstacle {
    /// It is not what the run left.
    #[error("{0} was changed since, by someone else")]
    Changed(VPath),
    /// What a run changed is no longer known.
    #[error("what run {0} changed is no longer known (`undo:` in agent.yaml bounds it)")]
    Forgotten(RunId),
    /// What was there before was not kept.
    #[error("{path} cannot be put back: {reason}")]
    NotCaptured {
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
    log: Arc<dyn UndoLog>,
}

impl Agent {
    /// Undo for a session of `owner`.
    pub fn undo(&self, owner: &Owner, session: &SessionId) -> Undo {
        let place = &self.parts.place;
        Undo {
            files: place.files(owner, session, None),
            log: place.changes(owner),
        }
    }

    /// Takes back what `runs` of a session changed, while nobody else works on it. Nothing is
    /// changed if the plan has obstacles.
    pub async fn undo_runs(
        &self,
        owner: &Owner,
        session: &SessionId,
        runs: &[RunId],
    ) -> Result<UndoPlan, AgentError> {
        let opened = self
            .parts
            .place
            .sessions(owner)
            .open(session, None, LockWait::No)
            .await?;
        let undo = self.undo(owner, session);
        let mut plan = undo.plan(session, runs).await;
        let forgotten = self.forgotten_runs(owner, session, runs, &undo).await;
        if let (Ok(plan), Ok(forgotten)) = (&mut plan, forgotten) {
            plan.obstacles
                .extend(forgotten.into_iter().map(UndoObstacle::Forgotten));
        }
        let undone = match plan {
            Ok(plan) if plan.obstacles.is_empty() => undo.apply(&plan).await.map(|()| plan),
            planned => planned,
        };
        opened.writer.close().await;
        undone
    }

    /// Those of `runs` that changed something, as the journal says, and of which nothing is on
    /// record.
    async fn forgotten_runs(
        &self,
        owner: &Owner,
        session: &SessionId,
        runs: &[RunId],
        undo: &Undo,
    ) -> Result<Vec<RunId>, AgentError> {
        let lines = self.parts.place.sessions(owner).read(session).await?;
        let intents = lines.iter().filter_map(|line| match &line.entry {
            Entry::Call(intent) if intent.changes => Some((&intent.run, &intent.id)),
            _ => None,
        });
        let done: BTreeSet<(&RunId, &String)> = lines
            .iter()
            .filter_map(|line| match &line.entry {
                Entry::Result(result) if result.status == ResultStatus::Ok => {
                    Some((&result.run, &result.id))
                }
                _ => None,
            })
            .collect();
        let changed: BTreeSet<&RunId> = intents
            .filter(|call| done.contains(call))
            .map(|(run, _)| run)
            .collect();
        let mut forgotten = Vec::new();
        for run in runs.iter().filter(|run| changed.contains(run)) {
            let key = RunKey {
                session: session.clone(),
                run: run.clone(),
            };
            if undo.log.records(&key).await?.is_empty() {
                forgotten.push(run.clone());
            }
        }
        Ok(forgotten)
    }

    /// The runs of a session that began after entry `seq`, oldest first.
    pub async fn runs_after(
        &self,
        owner: &Owner,
        session: &SessionId,
        seq: u64,
    ) -> Result<Vec<RunId>, AgentError> {
        let lines = self.parts.place.sessions(owner).read(session).await?;
        let inputs = lines
            .into_iter()
            .filter(|line| line.seq > seq)
            .filter_map(|line| match line.entry {
                Entry::User(input) => Some(input.run),
                _ => None,
            });
        Ok(inputs.collect())
    }
}

impl Undo {
    /// The newest run that changed something, of one session or of any.
    pub async fn newest(&self, session: Option<&SessionId>) -> Result<Option<RunKey>, AgentError> {
        let runs = self.log.runs().await?.into_iter().map(|run| run.key).rev();
        for key in runs.filter(|key| session.is_none_or(|session| key.session == *session)) {
            if !net_changes(&self.records(&key).await?).is_empty() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// The run whose id begins with `text`, if there is exactly one that changed something.
    pub async fn find(&self, text: &str) -> Result<Vec<RunKey>, AgentError> {
        let runs = self.log.runs().await?.into_iter().map(|run| run.key);
        Ok(runs
            .filter(|key| key.run.as_str().starts_with(text))
            .collect())
    }

    /// What undoing `runs`, given oldest first, would do.
    pub async fn plan(&self, session: &SessionId, runs: &[RunId]) -> Result<UndoPlan, AgentError> {
        let runs: Vec<RunKey> = runs
            .iter()
            .map(|run| RunKey {
                session: session.clone(),
                run: run.clone(),
            })
            .collect();
        let mut plan = UndoPlan {
            runs,
            ..UndoPlan::default()
        };
        let mut net_of_all: BTreeMap<String, (FileState, FileState)> = BTreeMap::new();
        for run in &plan.runs {
            for (path, (before, after)) in net_changes(&self.records(run).await?) {
                let known = net_of_all
                    .entry(path)
                    .or_insert_with(|| (before, FileState::Absent));
                known.1 = after;
            }
        }
        let mut cleared = Vec::new();
        for (path, (before, after)) in net_of_all {
            let path = VPath::parse(&path).map_err(VfsError::from)?;
            cleared.extend(self.plan_path(&mut plan, path, before, after).await?);
        }
        for directory in cleared {
            self.plan_directory_removal(&mut plan, &directory).await?;
        }
        Ok(plan)
    }

    async fn records(&self, run: &RunKey) -> Result<Vec<ChangeRecord>, AgentError> {
        let lines = self.log.records(run).await?;
        let parsed = lines.iter().map(|line| {
            serde_json::from_str(line).map_err(|cause| {
                let place = format!("the changes of run {}", run.run);
                stead_store::StoreError::Corrupt {
                    place,
                    cause: cause.to_string(),
                }
                .into()
            })
        });
        parsed.collect()
    }

    /// A directory must make room for the file it replaced: nothing may be in it but what goes
    /// anyway.
    async fn plan_directory_removal(
        &self,
        plan: &mut UndoPlan,
        directory: &VPath,
    ) -> Result<(), AgentError> {
        let goes: BTreeSet<&VPath> = plan
            .steps
            .iter()
            .filter(|step| {
                matches!(
                    step.action,
                    UndoAction::Remove | UndoAction::RemoveDirectory
                )
            })
            .map(|step| &step.path)
            .collect();
        let inside = self
            .files
            .walk(directory, None, usize::MAX / 2)
            .await?
            .entries;
        let foreign = inside
            .into_iter()
            .map(|(path, _)| path)
            .find(|path| !goes.contains(path));
        match foreign {
            Some(path) => plan.obstacles.push(UndoObstacle::Changed(path)),
            None => plan.steps.push(UndoStep {
                path: directory.clone(),
                action: UndoAction::RemoveDirectory,
            }),
        }
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(())
    }

    /// Adds what is to be done about a path. Gives it back if a directory there must make room
    /// first.
    async fn plan_path(
        &self,
        plan: &mut UndoPlan,
        path: VPath,
        before: FileState,
        after: FileState,
    ) -> Result<Option<VPath>, AgentError> {
        let (now, version) = self.current_state(&path).await?;
        let mut step = |action| {
            plan.steps.push(UndoStep {
                path: path.clone(),
                action,
            })
        };
        match (before, after) {
            (before, _) if is_same_state(&before, &now) => {}
            (FileState::Unkept(reason), _) => plan
                .obstacles
                .push(UndoObstacle::NotCaptured { path, reason }),
            // Others may have put something into it, or removed it: neither is ours to judge.
            (FileState::Absent, FileState::Directory) if now == FileState::Directory => {
                step(UndoAction::RemoveDirectory)
            }
            (FileState::Absent, FileState::Directory) => {}
            (FileState::Directory, _) if now == FileState::Absent => {
                step(UndoAction::MakeDirectory)
            }
            (_, after) if !is_same_state(&after, &now) => {
                plan.obstacles.push(UndoObstacle::Changed(path))
            }
            (FileState::Absent, _) => step(UndoAction::Remove),
            (FileState::Directory, _) => {
                step(UndoAction::Remove);
                step(UndoAction::MakeDirectory);
            }
            (FileState::File { hash, .. }, _) if self.saved_content(&hash).await?.is_none() => {
                let reason = "its earlier content is no longer kept".to_owned();
                plan.obstacles
                    .push(UndoObstacle::NotCaptured { path, reason });
            }
            (FileState::File { hash, mode }, _) => {
                step(UndoAction::Restore {
                    hash,
                    mode,
                    over: version,
                });
                return Ok((now == FileState::Directory).then_some(path));
            }
        }
        Ok(None)
    }

    /// The content that a step would restore; none if it is not kept, or not whole.
    pub async fn saved_content(&self, hash: &str) -> Result<Option<Bytes>, AgentError> {
        let image = self.log.image(hash).await?;
        Ok(image.filter(|image| ContentHash::of(image).to_string() == hash))
    }

    /// The content of a file as it is now; none if there is none.
    pub async fn current_content(&self, path: &VPath) -> Result<Option<Bytes>, AgentError> {
        match self.files.read(path, ReadRange::ALL).await {
            Ok((content, _)) => Ok(Some(content)),
            Err(VfsError::NotFound(_) | VfsError::IsDirectory(_) | VfsError::NotDirectory(_)) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Does what the plan says, and forgets the runs' changes. Stopped half-way, it can be done
    /// again.
    pub async fn apply(&self, plan: &UndoPlan) -> Result<(), AgentError> {
        let steps = |wanted: fn(&UndoAction) -> bool| {
            plan.steps.iter().filter(move |step| wanted(&step.action))
        };
        // What was made goes first: a file may stand where a directory was.
        for step in steps(|action| *action == UndoAction::Remove) {
            self.files.remove(&step.path).await?;
        }
        for step in steps(|action| *action == UndoAction::RemoveDirectory)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
        {
            if self
                .files
                .list(&step.path)
                .await
                .is_ok_and(|entries| entries.is_empty())
            {
                self.files.remove(&step.path).await?;
            }
        }
        for step in steps(|action| *action == UndoAction::MakeDirectory) {
            self.files.mkdir(&step.path).await?;
        }
        for step in &plan.steps {
            let UndoAction::Restore { hash, mode, over } = &step.action else {
                continue;
            };
            let Some(content) = self.saved_content(hash).await? else {
                continue;
            };
            let expect = over.clone().map_or(Expect::Absent, Expect::Version);
            self.files.write(&step.path, content, expect).await?;
            if let Some(mode) = mode {
                self.files.set_mode(&step.path, *mode).await?;
            }
        }
        for run in &plan.runs {
            // Not merely forgotten: that there is nothing left to undo must be told from not
            // knowing.
            self.log.delete_run(run).await?;
            let line = serde_json::to_string(&ChangeRecord::Undone).unwrap_or_default();
            self.log.record(run, line, Vec::new()).await?;
        }
        Ok(())
    }

    async fn current_state(
        &self,
        path: &VPath,
    ) -> Result<(FileState, Option<Version>), AgentError> {
        // Changes were recorded with links followed; one that stands there now leads to another's
        // file.
        if self.files.resolve(path).await.is_ok_and(|end| end != *path) {
            return Ok((FileState::Unkept("a link leads elsewhere".to_owned()), None));
        }
        let stat = match self.files.stat(path).await {
            Ok(stat) => stat,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => {
                return Ok((FileState::Absent, None));
            }
            Err(error) => return Err(error.into()),
        };
        Ok(match stat.kind {
            FileKind::Directory => (FileState::Directory, None),
            FileKind::Other => (
                FileState::Unkept("it is not a regular file".to_owned()),
                None,
            ),
            FileKind::File => {
                let (content, version) = self.files.read(path, ReadRange::ALL).await?;
                let hash = ContentHash::of(&content).to_string();
                (
                    FileState::File {
                        hash,
                        mode: stat.mode,
                    },
                    Some(version),
                )
            }
        })
    }
}

/// What was at each path before the first change and after the last, since anything was taken back.
fn net_changes(records: &[ChangeRecord]) -> BTreeMap<String, (FileState, FileState)> {
    let done = records
        .iter()
        .rposition(|record| *record == ChangeRecord::Undone)
        .map_or(0, |at| at + 1);
    let records = &records[done..];
    let void: BTreeSet<&str> = records
        .iter()
        .filter_map(|record| match record {
            ChangeRecord::Void { id } => Some(id.as_str()),
            ChangeRecord::Change { .. } | ChangeRecord::Undone => None,
        })
        .collect();
    let mut net: BTreeMap<String, (FileState, FileState)> = BTreeMap::new();
    for record in records {
        let ChangeRecord::Change { id, paths } = record else {
            continue;
        };
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

/// Whether two states are the same for a person: content counts, permission bits where both are
/// known.
fn is_same_state(a: &FileState, b: &FileState) -> bool {
    match (a, b) {
        (FileState::File { hash: a, mode: m }, FileState::File { hash: b, mode: n }) => {
            a == b && (m.is_none() || n.is_none() || m.map(|m| m & 0o777) == n.map(|n| n & 0o777))
        }
        (FileState::Absent, FileState::Absent) | (FileState::Directory, FileState::Directory) => {
            true
        }
        (
            FileState::Absent
            | FileState::Directory
            | FileState::File { .. }
            | FileState::Unkept(_),
            _,
        ) => false,
    }
}
