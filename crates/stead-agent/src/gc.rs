//! Keeping what sessions leave behind within its bounds: the memory of undo, and offloaded files.

use crate::offload::orphaned_folders;
use crate::{Agent, AgentError};
use std::collections::{BTreeMap, BTreeSet};
use stead_core::{Owner, SessionId};
use stead_store::{RunKey, UndoLog};
use stead_vfs::{ChangeRecord, FileState};

/// A content that no run refers to is kept this long: a run may be about to.
const GRACE_MS: i64 = 60 * 60 * 1000;
/// How long the changes of a run that has not ended are kept whatever the bounds.
const OPEN_RUN_KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// What was, or would be, forgotten.
#[derive(Debug, Default, Clone, PartialEq, Eq, serde::Serialize)]
pub struct GcReport {
    /// Runs that can no longer be undone.
    pub runs: usize,
    /// Contents that are no longer kept.
    pub contents: usize,
    /// Their size.
    pub bytes: u64,
    /// What is still kept.
    pub kept_bytes: u64,
    /// Sessions that are gone and whose offloaded files are no longer kept.
    pub offloads: usize,
    /// The size of those files.
    pub offloaded_bytes: u64,
    /// Things that crashed processes had left behind.
    pub leftovers: usize,
}

/// Whether to do it or only to say what would be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Do it.
    Apply,
    /// Only say.
    DryRun,
}

impl Agent {
    /// Forgets how to undo runs that are too old, whose session is gone, or that do not fit into
    /// the space that is set for it (`undo:` in agent.yaml), oldest first. Removes what sessions
    /// that are gone had offloaded.
    pub async fn collect_garbage(
        &self,
        owner: &Owner,
        really: GcMode,
    ) -> Result<GcReport, AgentError> {
        let log = self.parts.place.changes(owner);
        // Before the sessions: one that begins meanwhile is not taken for one that is gone.
        let folders = self.offload_folders(owner).await?;
        let listed = self.parts.place.sessions(owner).list().await?;
        let sessions: BTreeSet<_> = listed.iter().map(|summary| &summary.id).collect();
        // A run that is going on, or waits, may add to what it has on record.
        let open: BTreeSet<_> = listed
            .iter()
            .filter(|summary| summary.outcome.is_none())
            .map(|s| &s.id)
            .collect();
        let now_ms = jiff::Timestamp::now().as_millisecond();
        let settings = &self.parts.workspace.config().undo;
        let oldest_ms = now_ms
            .saturating_sub(i64::from(settings.keep_days).saturating_mul(24 * 60 * 60 * 1000));
        let mut kept: Vec<(RunKey, BTreeSet<String>)> = Vec::new();
        let mut forgotten = Vec::new();
        let mut pinned: Vec<BTreeSet<String>> = Vec::new();
        for run in log.runs().await? {
            let recent =
                run.updated_ms > now_ms - OPEN_RUN_KEPT_MS && open.contains(&run.key.session);
            let old = run.updated_ms < oldest_ms || !sessions.contains(&run.key.session);
            if recent {
                pinned.push(contents_of(&*log, &run.key).await?);
            } else if old {
                forgotten.push(run.key);
            } else {
                let contents = contents_of(&*log, &run.key).await?;
                kept.push((run.key, contents));
            }
        }
        let images = log.images().await?;
        let sizes: BTreeMap<&str, u64> = images
            .iter()
            .map(|image| (image.hash.as_str(), image.bytes))
            .collect();
        let room = settings.max_mb.saturating_mul(1024 * 1024);
        let total = |kept: &[(RunKey, BTreeSet<String>)]| -> u64 {
            let referred: BTreeSet<&String> =
                kept.iter().flat_map(|(_, contents)| contents).collect();
            referred
                .into_iter()
                .filter_map(|hash| sizes.get(hash.as_str()))
                .sum()
        };
        while !kept.is_empty() && total(&kept) > room {
            forgotten.push(kept.remove(0).0);
        }
        let referred: BTreeSet<&String> = kept
            .iter()
            .flat_map(|(_, contents)| contents)
            .chain(pinned.iter().flatten())
            .collect();
        let unused = images
            .iter()
            .filter(|image| !referred.contains(&image.hash) && image.kept_ms < now_ms - GRACE_MS);
        let unused: Vec<_> = unused.collect();
        let abandoned = orphaned_folders(&folders, &sessions);
        let mut offloaded_bytes = 0;
        for folder in &abandoned {
            offloaded_bytes += self.offloaded_bytes(owner, folder).await?;
        }
        let collected = GcReport {
            runs: forgotten.len(),
            contents: unused.len(),
            bytes: unused.iter().map(|image| image.bytes).sum(),
            kept_bytes: total(&kept),
            offloads: abandoned.len(),
            offloaded_bytes,
            leftovers: 0,
        };
        if really == GcMode::Apply {
            for run in &forgotten {
                log.delete_run(run).await?;
            }
            for image in unused {
                log.delete_image(&image.hash).await?;
            }
            for folder in abandoned {
                self.remove_offloaded(owner, folder).await?;
            }
        }
        Ok(collected)
    }
}

impl Agent {
    /// Forgets how to undo the runs of a session that is gone.
    pub async fn forget_changes(
        &self,
        owner: &Owner,
        session: &SessionId,
    ) -> Result<(), AgentError> {
        let log = self.parts.place.changes(owner);
        for run in log
            .runs()
            .await?
            .into_iter()
            .filter(|run| run.key.session == *session)
        {
            log.delete_run(&run.key).await?;
        }
        Ok(())
    }
}

/// The contents that undoing a run would need.
async fn contents_of(log: &dyn UndoLog, run: &RunKey) -> Result<BTreeSet<String>, AgentError> {
    let mut contents = BTreeSet::new();
    for line in log.records(run).await? {
        // A line that cannot be read keeps nothing: undoing that run fails anyway.
        let Ok(ChangeRecord::Change { paths, .. }) = serde_json::from_str(&line) else {
            continue;
        };
        contents.extend(paths.into_iter().filter_map(|change| match change.before {
            FileState::File { hash, .. } => Some(hash),
            FileState::Absent | FileState::Directory | FileState::Unkept(_) => None,
        }));
    }
    Ok(contents)
}
