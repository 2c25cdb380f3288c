//! Garbage collection: undo records and offloaded files are kept within their limits.
//!
//! Effects: the clock, randomness, workspace files (writes), the store (writes), the journal
//! (reads).

use crate::offload::{OffloadFolders, SessionFolder, orphaned_folders};
use crate::{AgentError, AgentParts};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_store::{LoggedRun, PreImage, RunKey, SessionSummary, UndoLog};
use stead_vfs::{ChangeRecord, FileState};

/// How long content that no run refers to is kept: a run may be about to refer to it.
const GRACE_MS: i64 = 60 * 60 * 1000;
/// How long the changes of an open run are kept, whatever the limits.
const OPEN_RUN_KEPT_MS: i64 = 24 * 60 * 60 * 1000;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// What a garbage collection removed, or would remove.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GcReport {
    /// The number of runs that can no longer be undone.
    pub runs: usize,
    /// The number of file contents that were removed.
    pub contents: usize,
    /// The size of those contents.
    pub bytes: u64,
    /// The size of the contents that are still kept.
    pub kept_bytes: u64,
    /// The number of removed sessions whose offloaded files were removed.
    pub offloads: usize,
    /// The size of those files.
    pub offloaded_bytes: u64,
    /// The number of files that crashed processes had left behind; `None` if nobody looked for them,
    /// as in a dry run.
    pub leftovers: Option<usize>,
}

/// Whether to change anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApplyMode {
    /// Do it.
    Apply,
    /// Only report what would be done.
    DryRun,
}

/// Removes data of one owner that is no longer needed.
#[derive(Debug)]
pub struct GarbageCollector<'a> {
    parts: &'a AgentParts,
    log: Arc<dyn UndoLog>,
    offloaded: OffloadFolders<'a>,
    owner: Owner,
}

/// The limits on undo records at one point in time.
struct UndoLimits {
    now_ms: i64,
    keep_days: u32,
    max_bytes: u64,
}

/// What happens to the undo record of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunRetention {
    /// It is kept, whatever the limits: its run is still open.
    Pinned,
    /// It is kept as long as there is space.
    Kept,
    /// It is too old, or its session was removed.
    Expired,
}

/// The undo records that remain, and those that are removed.
#[derive(Default)]
struct UndoSelection {
    expired: Vec<RunKey>,
    /// The runs that are kept, oldest first, with the hashes of the contents they need.
    kept: Vec<(RunKey, BTreeSet<String>)>,
    pinned: Vec<BTreeSet<String>>,
}

impl<'a> GarbageCollector<'a> {
    pub(crate) fn new(parts: &'a AgentParts, owner: &Owner) -> Self {
        Self {
            parts,
            log: parts.place.changes(owner),
            offloaded: OffloadFolders::new(parts, owner),
            owner: owner.clone(),
        }
    }

    /// Removes the undo records of runs that are too old, whose session was removed, or that do not
    /// fit into the configured space (`undo:` in agent.yaml), oldest first. Also removes the
    /// offloaded files of removed sessions.
    pub async fn collect(&self, mode: ApplyMode) -> Result<GcReport, AgentError> {
        // Folders are listed before sessions, so that a session that begins in between does not
        // look removed.
        let folders = self.offloaded.list().await?;
        let listed = self.parts.place.sessions(&self.owner).list_all().await?;
        let settings = &self.parts.workspace.config().undo;
        let limits = UndoLimits {
            now_ms: jiff::Timestamp::now().as_millisecond(),
            keep_days: settings.keep_days,
            max_bytes: settings.max_mb.saturating_mul(1024 * 1024),
        };
        let mut selection = self.select_runs(&listed, &limits).await?;
        let images = self.log.images().await?;
        let kept_bytes = selection.fit_into(&images, limits.max_bytes);
        let unused = selection.unused_images(&images, limits.now_ms);
        let sessions: BTreeSet<_> = listed.iter().map(|summary| &summary.id).collect();
        let orphaned = orphaned_folders(&folders, &sessions);
        let mut offloaded_bytes = 0;
        for folder in &orphaned {
            offloaded_bytes += self.offloaded.size(folder).await?;
        }
        let report = GcReport {
            runs: selection.expired.len(),
            contents: unused.len(),
            bytes: unused.iter().map(|image| image.bytes).sum(),
            kept_bytes,
            offloads: orphaned.len(),
            offloaded_bytes,
            leftovers: None,
        };
        match mode {
            ApplyMode::Apply => self.remove(&selection.expired, &unused, &orphaned).await?,
            ApplyMode::DryRun => {}
        }
        Ok(report)
    }

    /// Removes the undo records, the inbox and the offloaded files of a session that was removed.
    pub async fn forget_session(&self, session: &SessionId) -> Result<(), AgentError> {
        let runs = self.log.runs().await?.into_iter();
        for run in runs.filter(|run| run.key.session == *session) {
            self.log.delete_run(&run.key).await?;
        }
        let place = &self.parts.place;
        place.inbox(&self.owner, session).clear().await?;
        self.offloaded.remove_of_session(session).await
    }

    async fn select_runs(
        &self,
        listed: &[SessionSummary],
        limits: &UndoLimits,
    ) -> Result<UndoSelection, AgentError> {
        let open: BTreeMap<&SessionId, bool> = listed
            .iter()
            .map(|summary| (&summary.id, summary.outcome.is_none()))
            .collect();
        let mut selection = UndoSelection::default();
        for run in self.log.runs().await? {
            let is_open = open.get(&run.key.session).copied();
            match limits.retention(&run, is_open) {
                RunRetention::Expired => selection.expired.push(run.key),
                RunRetention::Kept => {
                    let contents = contents_of(&*self.log, &run.key).await?;
                    selection.kept.push((run.key, contents));
                }
                RunRetention::Pinned => selection
                    .pinned
                    .push(contents_of(&*self.log, &run.key).await?),
            }
        }
        Ok(selection)
    }

    async fn remove(
        &self,
        runs: &[RunKey],
        images: &[&PreImage],
        folders: &[&SessionFolder],
    ) -> Result<(), AgentError> {
        for run in runs {
            self.log.delete_run(run).await?;
        }
        for image in images {
            self.log.delete_image(&image.hash).await?;
        }
        for folder in folders {
            self.offloaded.remove(folder).await?;
        }
        Ok(())
    }
}

impl UndoLimits {
    /// Decides about a run. `is_open` says whether the newest run of its session is open; it is
    /// `None` if the session was removed.
    fn retention(&self, run: &LoggedRun, is_open: Option<bool>) -> RunRetention {
        let keep_ms = i64::from(self.keep_days).saturating_mul(DAY_MS);
        let oldest_ms = self.now_ms.saturating_sub(keep_ms);
        if run.updated_ms > self.now_ms - OPEN_RUN_KEPT_MS && is_open == Some(true) {
            RunRetention::Pinned
        } else if run.updated_ms < oldest_ms || is_open.is_none() {
            RunRetention::Expired
        } else {
            RunRetention::Kept
        }
    }
}

impl UndoSelection {
    /// Lets the oldest runs expire until the contents of the others fit into `max_bytes`. Returns
    /// the size of what is kept.
    fn fit_into(&mut self, images: &[PreImage], max_bytes: u64) -> u64 {
        let sizes: BTreeMap<&str, u64> = images
            .iter()
            .map(|image| (image.hash.as_str(), image.bytes))
            .collect();
        let total = |kept: &[(RunKey, BTreeSet<String>)]| -> u64 {
            let needed: BTreeSet<&String> =
                kept.iter().flat_map(|(_, contents)| contents).collect();
            needed
                .into_iter()
                .filter_map(|hash| sizes.get(hash.as_str()))
                .sum()
        };
        while !self.kept.is_empty() && total(&self.kept) > max_bytes {
            self.expired.push(self.kept.remove(0).0);
        }
        total(&self.kept)
    }

    /// Returns the contents that no remaining run needs.
    fn unused_images<'i>(&self, images: &'i [PreImage], now_ms: i64) -> Vec<&'i PreImage> {
        let kept = self.kept.iter().flat_map(|(_, contents)| contents);
        let needed: BTreeSet<&String> = kept.chain(self.pinned.iter().flatten()).collect();
        let is_unused =
            |image: &&PreImage| !needed.contains(&image.hash) && image.kept_ms < now_ms - GRACE_MS;
        images.iter().filter(is_unused).collect()
    }
}

/// Returns the hashes of the contents that undoing a run needs.
async fn contents_of(log: &dyn UndoLog, run: &RunKey) -> Result<BTreeSet<String>, AgentError> {
    let mut contents = BTreeSet::new();
    for line in log.records(run).await? {
        // A line that cannot be parsed needs nothing: undoing that run fails anyway.
        let Ok(ChangeRecord::Change { paths, .. }) = serde_json::from_str(&line) else {
            continue;
        };
        contents.extend(paths.into_iter().filter_map(|change| match change.before {
            FileState::File { hash, .. } => Some(hash),
            FileState::Absent
            | FileState::Directory { .. }
            | FileState::Unkept(_)
            | FileState::Moved { .. } => None,
        }));
    }
    Ok(contents)
}
