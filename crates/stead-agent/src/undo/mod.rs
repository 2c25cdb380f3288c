//! Undo of the file changes of a run.
//!
//! The log of a run has the state of every path before and after each operation. Undo uses the
//! first and the last of these: if the file still is as the run left it, it is restored to the
//! state before the run. If it is anything else, it was changed since, and nothing is undone.
//!
//! Effects: the clock, workspace files (writes), the store (writes), the journal (writes).

mod commands;
mod plan;

pub use plan::{UndoAction, UndoObstacle, UndoPlan, UndoStep};

use crate::AgentError;
use bytes::Bytes;
use plan::{NetChanges, after_all_moves, is_same_state, net_changes};
use std::collections::BTreeSet;
use std::sync::Arc;
use stead_core::{Entry, Owner, ResultStatus, RunId, SessionId};
use stead_place::Place;
use stead_store::{LockWait, RunKey, Sessions, UndoLog};
use stead_vfs::{
    ChangeRecord, ContentHash, Expect, FileKind, FileState, ReadRange, VPath, Version, Vfs,
    VfsError, moved_identity,
};

/// The owner's access to a directory, which is needed to fill it.
const OWNER_ACCESS: u32 = 0o700;

/// The changes that the runs of a session made to files, and undo for them.
#[derive(Debug)]
pub struct UndoHistory {
    files: Arc<dyn Vfs>,
    log: Arc<dyn UndoLog>,
    sessions: Arc<dyn Sessions>,
    session: SessionId,
}

impl UndoHistory {
    pub(crate) fn new(place: &dyn Place, owner: &Owner, session: &SessionId) -> Self {
        Self {
            files: place.files(owner, session, None),
            log: place.changes(owner),
            sessions: place.sessions(owner),
            session: session.clone(),
        }
    }

    /// Undoes the changes of `runs`, given oldest first. The session is locked meanwhile. Nothing
    /// is changed if the returned plan has obstacles.
    pub async fn undo_runs(&self, runs: &[RunId]) -> Result<UndoPlan, AgentError> {
        let opened = self
            .sessions
            .open(&self.session, None, LockWait::No)
            .await?;
        let mut plan = self.plan(runs).await;
        let forgotten = self.forgotten_runs(runs).await;
        if let (Ok(plan), Ok(forgotten)) = (&mut plan, forgotten) {
            plan.obstacles
                .extend(forgotten.into_iter().map(UndoObstacle::Forgotten));
        }
        let undone = match plan {
            Ok(plan) if plan.obstacles.is_empty() => self.apply(&plan).await.map(|()| plan),
            planned => planned,
        };
        opened.writer.close().await;
        undone
    }

    /// Returns those of `runs` that changed files according to the journal, but whose changes are
    /// no longer recorded.
    async fn forgotten_runs(&self, runs: &[RunId]) -> Result<Vec<RunId>, AgentError> {
        let lines = self.sessions.read(&self.session).await?;
        let intents = lines.iter().filter_map(|line| {
            let Entry::Call(intent) = &line.entry else {
                return None;
            };
            intent.changes.then_some((&intent.run, &intent.id))
        });
        let done: BTreeSet<(&RunId, &String)> = lines
            .iter()
            .filter_map(|line| {
                let Entry::Result(result) = &line.entry else {
                    return None;
                };
                (result.status == ResultStatus::Ok).then_some((&result.run, &result.id))
            })
            .collect();
        let changed: BTreeSet<&RunId> = intents
            .filter(|call| done.contains(call))
            .map(|(run, _)| run)
            .collect();
        let mut forgotten = Vec::new();
        for run in runs.iter().filter(|run| changed.contains(run)) {
            if self.log.records(&self.key(run)).await?.is_empty() {
                forgotten.push(run.clone());
            }
        }
        Ok(forgotten)
    }

    /// Returns the runs of the session that began after entry `seq`, oldest first.
    pub async fn runs_after(&self, seq: u64) -> Result<Vec<RunId>, AgentError> {
        let lines = self.sessions.read(&self.session).await?;
        let inputs = lines
            .into_iter()
            .filter(|line| line.seq > seq)
            .filter_map(|line| {
                let Entry::User(input) = line.entry else {
                    return None;
                };
                Some(input.run)
            });
        Ok(inputs.collect())
    }

    fn key(&self, run: &RunId) -> RunKey {
        RunKey {
            session: self.session.clone(),
            run: run.clone(),
        }
    }

    /// Returns the newest run that changed a file, of `session` or of any session of the owner.
    pub async fn newest(&self, session: Option<&SessionId>) -> Result<Option<RunKey>, AgentError> {
        let runs = self.log.runs().await?.into_iter().map(|run| run.key).rev();
        for key in runs.filter(|key| session.is_none_or(|session| key.session == *session)) {
            if !net_changes(&self.records(&key).await?).is_empty() {
                return Ok(Some(key));
            }
        }
        Ok(None)
    }

    /// Returns the recorded runs, of any session of the owner, whose id begins with `text`.
    pub async fn find(&self, text: &str) -> Result<Vec<RunKey>, AgentError> {
        let runs = self.log.runs().await?.into_iter().map(|run| run.key);
        Ok(runs
            .filter(|key| key.run.as_str().starts_with(text))
            .collect())
    }

    /// Plans undoing `runs`, given oldest first. Nothing is changed.
    pub async fn plan(&self, runs: &[RunId]) -> Result<UndoPlan, AgentError> {
        let mut plan = UndoPlan {
            runs: runs.iter().map(|run| self.key(run)).collect(),
            ..UndoPlan::default()
        };
        let mut net_of_all = NetChanges::new();
        for run in &plan.runs {
            let net = net_changes(&self.records(run).await?).into_iter();
            let net: Vec<_> = net
                .map(|(path, (before, after))| (path, before, after_all_moves(&net_of_all, after)))
                .collect();
            for (path, before, after) in net {
                let known = net_of_all
                    .entry(path)
                    .or_insert_with(|| (before, FileState::Absent));
                known.1 = after;
            }
        }
        self.plan_moves(&mut plan, &mut net_of_all).await?;
        let mut cleared = Vec::new();
        for (path, (before, after)) in net_of_all {
            let path = VPath::parse(&path).map_err(VfsError::from)?;
            cleared.extend(self.plan_path(&mut plan, path, before, after).await?);
        }
        for directory in cleared {
            self.plan_directory_removal(&mut plan, &directory).await?;
        }
        plan.steps.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(plan)
    }

    /// Plans moving back what is where the runs moved it. Everything else stays in `net`.
    async fn plan_moves(
        &self,
        plan: &mut UndoPlan,
        net: &mut NetChanges,
    ) -> Result<(), AgentError> {
        let moves: Vec<(String, String, String)> = net
            .iter()
            .filter_map(|(to, change)| {
                let (FileState::Absent, FileState::Moved { from, identity }) = change else {
                    return None;
                };
                Some((from.clone(), to.clone(), identity.clone()))
            })
            .collect();
        for (from, to, identity) in moves {
            let is_gone = matches!(
                net.get(&from),
                Some((FileState::Unkept(_), FileState::Absent))
            );
            let path = VPath::parse(&from).map_err(VfsError::from)?;
            let now = VPath::parse(&to).map_err(VfsError::from)?;
            let is_free = matches!(self.files.stat(&path).await, Err(VfsError::NotFound(_)));
            if is_gone && is_free && moved_identity(&*self.files, &now).await == Some(identity) {
                plan.steps.push(UndoStep {
                    path,
                    action: UndoAction::MoveBack { from: now },
                });
                net.remove(&from);
                net.remove(&to);
            }
        }
        Ok(())
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

    /// Plans removing a directory that stands where a file was. Anything in it that the plan does
    /// not remove is an obstacle.
    async fn plan_directory_removal(
        &self,
        plan: &mut UndoPlan,
        directory: &VPath,
    ) -> Result<(), AgentError> {
        let goes: BTreeSet<&VPath> = plan
            .steps
            .iter()
            .filter_map(|step| match &step.action {
                UndoAction::Remove | UndoAction::RemoveDirectory => Some(&step.path),
                UndoAction::MoveBack { from } => Some(from),
                UndoAction::Restore { .. } | UndoAction::MakeDirectory { .. } => None,
            })
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
        Ok(())
    }

    /// Adds the steps for one path. Returns the path if a directory must be removed from it
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
            (FileState::Absent, FileState::Moved { from, .. }) => {
                let reason = format!("it cannot be moved back to {from}");
                plan.obstacles
                    .push(UndoObstacle::NotCaptured { path, reason });
            }
            (FileState::Moved { .. }, _) => plan.obstacles.push(UndoObstacle::Changed(path)),
            (FileState::Unkept(reason), _) => plan
                .obstacles
                .push(UndoObstacle::NotCaptured { path, reason }),
            // Files that others put into the directory stay, and so does the directory.
            (FileState::Absent, FileState::Directory { .. })
                if matches!(now, FileState::Directory { .. }) =>
            {
                step(UndoAction::RemoveDirectory)
            }
            (FileState::Absent, FileState::Directory { .. }) => {}
            (FileState::Directory { mode }, _) if now == FileState::Absent => {
                step(UndoAction::MakeDirectory { mode })
            }
            // What is there now is not kept either, so nobody can tell whether it was changed.
            (_, FileState::Unkept(reason)) => plan
                .obstacles
                .push(UndoObstacle::NotCaptured { path, reason }),
            (_, after) if !is_same_state(&after, &now) => {
                plan.obstacles.push(UndoObstacle::Changed(path))
            }
            (FileState::Absent, _) => step(UndoAction::Remove),
            (FileState::Directory { mode }, _) => {
                step(UndoAction::Remove);
                step(UndoAction::MakeDirectory { mode });
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
                return Ok(matches!(now, FileState::Directory { .. }).then_some(path));
            }
        }
        Ok(None)
    }

    /// Returns the content that a step would restore; `None` if it is missing or damaged.
    pub async fn saved_content(&self, hash: &str) -> Result<Option<Bytes>, AgentError> {
        let image = self.log.image(hash).await?;
        Ok(image.filter(|image| ContentHash::of(image).to_string() == hash))
    }

    /// Returns the current content of a file; `None` if there is no file.
    pub async fn current_content(&self, path: &VPath) -> Result<Option<Bytes>, AgentError> {
        match self.files.read(path, ReadRange::ALL).await {
            Ok((content, _)) => Ok(Some(content)),
            Err(VfsError::NotFound(_) | VfsError::IsDirectory(_) | VfsError::NotDirectory(_)) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Carries the plan out and deletes the records of its runs. If it is interrupted, it can be
    /// applied again.
    pub async fn apply(&self, plan: &UndoPlan) -> Result<(), AgentError> {
        let steps = |wanted: fn(&UndoAction) -> bool| {
            plan.steps.iter().filter(move |step| wanted(&step.action))
        };
        // Removals first: a file may stand where a directory was.
        for step in steps(|action| *action == UndoAction::Remove) {
            self.files.remove(&step.path).await?;
        }
        let mut modes = Vec::new();
        for step in &plan.steps {
            let UndoAction::MakeDirectory { mode } = &step.action else {
                continue;
            };
            self.files.mkdir(&step.path).await?;
            if let Some(mode) = mode {
                // Nobody may look in meanwhile who could not before.
                let while_filled = mode | OWNER_ACCESS;
                self.files
                    .set_directory_mode(&step.path, while_filled)
                    .await?;
                if while_filled != *mode {
                    modes.push((&step.path, *mode));
                }
            }
        }
        for step in &plan.steps {
            if let UndoAction::MoveBack { from } = &step.action {
                self.files.rename(from, &step.path).await?;
            }
        }
        let emptied: Vec<&UndoStep> =
            steps(|action| *action == UndoAction::RemoveDirectory).collect();
        for step in emptied.into_iter().rev() {
            let entries = self.files.list(&step.path).await;
            if entries.is_ok_and(|entries| entries.is_empty()) {
                self.files.remove(&step.path).await?;
            }
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
        for (path, mode) in modes.into_iter().rev() {
            self.files.set_directory_mode(path, mode).await?;
        }
        for run in &plan.runs {
            // A record stays, so that an undone run differs from one whose changes were forgotten.
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
        // Changes were recorded with links followed. A link that is there now leads to another
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
            FileKind::Directory => (FileState::Directory { mode: stat.mode }, None),
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
