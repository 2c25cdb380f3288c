//! Part of spills: the file that takes an output while it is written.
//!
//! Effects: workspace files (writes).

use super::{Quota, SpillSite};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use stead_vfs::{VPath, Version, VfsError};
use tokio::sync::mpsc;

/// The most pieces that wait for the file.
const WAITING_PIECES: usize = 2;

/// A file that is being written.
pub(super) struct SpillFile {
    path: VPath,
    pieces: Option<mpsc::Sender<Bytes>>,
    /// The writing future. The caller polls it, so that no task outlives the call.
    writing: BoxFuture<'static, Result<Version, VfsError>>,
    quota: Arc<Quota>,
    cap_bytes: u64,
    written: u64,
    /// Why nothing more is written, if so.
    stopped: Option<SpillStop>,
}

enum SpillStop {
    /// The limit is reached.
    LimitReached(String),
    /// Writing failed.
    Failed(VfsError),
}

/// What a finished file contains.
pub(super) enum SpillFileEnd {
    /// The whole output.
    Whole(VPath),
    /// The first bytes of the output.
    Part {
        path: VPath,
        bytes: u64,
        why: String,
    },
    /// There is no file.
    Failed(String),
}

impl SpillFile {
    pub(super) fn open(site: &SpillSite, path: VPath) -> Self {
        let (pieces, mut waiting) = mpsc::channel::<Bytes>(WAITING_PIECES);
        let files = site.files.clone();
        let target = path.clone();
        let writing = Box::pin(async move {
            let source = stream::poll_fn(move |cx| waiting.poll_recv(cx)).boxed();
            files.write_stream(&target, source).await
        });
        let quota = site.quota.clone();
        let cap_bytes = site.cap_bytes;
        Self {
            path,
            pieces: Some(pieces),
            writing,
            quota,
            cap_bytes,
            written: 0,
            stopped: None,
        }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    pub(super) async fn push(&mut self, piece: &[u8]) {
        let (Some(pieces), None) = (&self.pieces, &self.stopped) else {
            return;
        };
        let below_cap = (piece.len() as u64).min(self.cap_bytes - self.written);
        let taken = self.quota.reserve_up_to(below_cap).await;
        self.written += taken;
        if taken < below_cap {
            self.stopped = Some(SpillStop::LimitReached(self.quota.describe()));
        } else if below_cap < piece.len() as u64 || self.written == self.cap_bytes {
            let cap = self.cap_bytes / (1024 * 1024);
            self.stopped = Some(SpillStop::LimitReached(format!(
                "of one output {cap} MB are kept"
            )));
        }
        let piece = Bytes::copy_from_slice(&piece[..taken as usize]);
        tokio::select! {
            biased;
            failed = &mut self.writing => {
                self.pieces = None;
                let lost = || VfsError::Io { path: self.path.clone(), source: std::io::Error::other("ended early") };
                self.stopped = Some(SpillStop::Failed(failed.err().unwrap_or_else(lost)));
            }
            // Sending fails only if the receiver is gone, and then the branch above is ready.
            _ = pieces.send(piece) => {}
        }
    }

    /// Finishes the file and moves it to its place.
    pub(super) async fn finish(mut self) -> SpillFileEnd {
        let failed = |quota: &Quota, written, error: VfsError| {
            quota.release(written);
            SpillFileEnd::Failed(format!("the rest could not be written: {error}"))
        };
        if let (0, Some(SpillStop::LimitReached(why))) = (self.written, &self.stopped) {
            return SpillFileEnd::Failed(why.clone());
        }
        if self.pieces.take().is_some()
            && let Err(error) = (&mut self.writing).await
        {
            return failed(&self.quota, self.written, error);
        }
        match self.stopped {
            None => SpillFileEnd::Whole(self.path),
            Some(SpillStop::LimitReached(why)) => SpillFileEnd::Part {
                path: self.path,
                bytes: self.written,
                why,
            },
            Some(SpillStop::Failed(error)) => failed(&self.quota, self.written, error),
        }
    }
}
