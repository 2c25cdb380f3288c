//! Files of the prompt that change during a run.
//!
//! The prompt is assembled when a run begins and stays the same, so that providers can cache it. If
//! one of its files changes meanwhile, the model is told so before its next step.
//!
//! Effects: the clock, workspace files (reads).

use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use stead_vfs::{VPath, Version, Vfs};
use stead_workspace::ContextFile;

/// How often the files are looked at while no call of the run can have changed them.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The versions of the files that the prompt of a run is made of.
#[derive(Debug, Default)]
pub(super) struct PromptFiles {
    /// The versions when they were last looked at, and when that was; none before the first time.
    known: Option<(BTreeMap<VPath, Option<Version>>, Instant)>,
    /// Whether a call may have changed files since.
    is_stale: bool,
}

impl PromptFiles {
    /// Notes that a call may have changed files.
    pub(super) fn mark_stale(&mut self) {
        self.is_stale = true;
    }

    /// Forgets the versions, because the prompt was assembled anew.
    pub(super) fn reset(&mut self) {
        *self = Self::default();
    }

    /// Whether it is time to look at the files.
    pub(super) fn is_due(&self) -> bool {
        let looked_at = self.known.as_ref().map(|(_, at)| at);
        self.is_stale || looked_at.is_none_or(|at| at.elapsed() >= LOOK_INTERVAL)
    }

    /// Looks at the files, as the prompt shows them, and returns those that changed since the last
    /// time.
    pub(super) async fn look(&mut self, context: &[ContextFile], files: &dyn Vfs) -> Vec<VPath> {
        let mut versions = BTreeMap::new();
        for ContextFile { path, .. } in context {
            let version = files.stat(path).await.ok().map(|stat| stat.version);
            versions.insert(path.clone(), version);
        }
        self.is_stale = false;
        let before = self.known.replace((versions.clone(), Instant::now()));
        let Some((before, _)) = before else {
            return Vec::new();
        };
        let differs =
            |(path, version): &(VPath, Option<Version>)| before.get(path) != Some(version);
        let changed = versions.into_iter().filter(differs);
        changed.map(|(path, _)| path).collect()
    }
}

/// Returns what the model is told about files that changed.
pub(super) fn change_notice(changed: &[VPath]) -> String {
    let names: Vec<&str> = changed.iter().map(VPath::as_str).collect();
    let it = if names.len() == 1 { "it" } else { "them" };
    format!(
        "Changed since this run began: {}. The system prompt shows {it} as before; read {it} again if that matters.",
        names.join(", ")
    )
}
