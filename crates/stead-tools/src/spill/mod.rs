//! Output of any length, in memory of a fixed size.
//!
//! A [`Spill`] holds the beginning and the end of what is written to it. What does not fit goes to
//! a file as it comes, up to a cap; whoever listens is told of the newest part a few times a
//! second.

mod deltas;
mod file;
mod quota;

pub use quota::Quota;

use crate::preview::{Preview, StoredExtent};
use crate::{Output, ReadTools};
use deltas::OutputDeltas;
use file::{SpillFile, SpillFileEnd};
use futures_util::future::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use stead_core::{RedactStream, Redactor};
use stead_sandbox::SinkState;
use stead_vfs::{VPath, Vfs};

/// What is held of the beginning; what is not longer needs no file.
const HEAD_BYTES: usize = 96 * 1024;
/// What is held of the end.
const TAIL_BYTES: usize = 64 * 1024;
/// Longer pieces are taken in parts.
const PIECE_BYTES: usize = 32 * 1024;

/// Where the long output of one call goes.
pub struct SpillSite {
    /// The files of the session, in front of which no rules stand.
    pub files: Arc<dyn Vfs>,
    /// The folder that holds them.
    pub folder: VPath,
    /// The name of the file, without what it ends with.
    pub name: String,
    /// What the file may hold.
    pub cap_bytes: u64,
    /// What all files of the session may hold.
    pub quota: Arc<Quota>,
    /// Knows the secrets that no file may hold.
    pub redactor: Redactor,
    /// How the model can read on.
    pub readers: ReadTools,
    /// Hears the newest part.
    pub listener: Arc<dyn Fn(String) + Send + Sync>,
}

impl SpillSite {
    /// What a file holds at most, unless set otherwise.
    pub const CAP_BYTES: u64 = 64 * 1024 * 1024;
}

impl fmt::Debug for SpillSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillSite")
            .field("folder", &self.folder)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Makes the spills of one call. Outside a session nothing but the ends is kept.
#[derive(Debug, Clone, Default)]
pub struct SpillFactory(Option<Arc<SpillShared>>);

#[derive(Debug)]
struct SpillShared {
    site: SpillSite,
    count: AtomicU32,
}

impl SpillFactory {
    /// Those that go to `site`.
    pub fn at(site: SpillSite) -> Self {
        Self(Some(Arc::new(SpillShared {
            site,
            count: AtomicU32::new(0),
        })))
    }

    /// A new one, with a file of its own.
    pub fn spill(&self) -> Spill {
        let number = self
            .0
            .as_ref()
            .map_or(0, |made| made.count.fetch_add(1, Ordering::Relaxed));
        let redactor = self.0.as_ref().map(|made| made.site.redactor.stream());
        Spill {
            shared: self.0.clone(),
            number,
            redactor: redactor.unwrap_or_else(|| Redactor::default().stream()),
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            line_ends: 0,
            last: None,
            target: SpillTarget::Memory,
            deltas: OutputDeltas::default(),
        }
    }
}

/// Takes output of any length.
pub struct Spill {
    shared: Option<Arc<SpillShared>>,
    number: u32,
    redactor: RedactStream,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Of all that was written, without secrets.
    bytes: u64,
    line_ends: u64,
    last: Option<u8>,
    target: SpillTarget,
    deltas: OutputDeltas,
}

/// Where what does not fit into memory goes.
enum SpillTarget {
    /// All of it fits so far.
    Memory,
    /// To a file.
    File(SpillFile),
    /// Nowhere, and why.
    Discarded(String),
}

impl fmt::Debug for Spill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spill")
            .field("made", &self.shared)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl stead_sandbox::OutputSink for Spill {
    fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, SinkState> {
        Box::pin(Spill::write(self, piece))
    }
}

impl Spill {
    /// Takes `piece` in, and waits while the file is slower than the writer.
    pub async fn write(&mut self, piece: &[u8]) -> SinkState {
        for part in piece.chunks(PIECE_BYTES) {
            let clean = self.redactor.push(part);
            self.append(&clean).await;
        }
        match &self.target {
            SpillTarget::Memory => SinkState::Accepting,
            SpillTarget::File(sink) if !sink.is_stopped() => SinkState::Accepting,
            SpillTarget::File(_) | SpillTarget::Discarded(_) => SinkState::Full,
        }
    }

    /// All that was written, if it fitted into memory; else where it is, and its two ends.
    pub async fn finish(mut self) -> Output {
        let rest = self.redactor.finish();
        self.append(&rest).await;
        if let Some(made) = &self.shared {
            self.deltas.flush(&*made.site.listener);
        }
        Output::text(
            match std::mem::replace(&mut self.target, SpillTarget::Memory) {
                SpillTarget::Memory => String::from_utf8_lossy(&self.head).into_owned(),
                SpillTarget::Discarded(why) => {
                    self.render_preview(|preview| preview.render_unstored(&why))
                }
                SpillTarget::File(sink) => {
                    let readers = self
                        .shared
                        .as_ref()
                        .map(|made| made.site.readers)
                        .unwrap_or_default();
                    match sink.finish().await {
                        SpillFileEnd::Whole(path) => self.render_preview(|preview| {
                            preview.render(StoredExtent::All(&path), &readers, "")
                        }),
                        SpillFileEnd::Part { path, bytes, .. } if bytes == self.bytes => self
                            .render_preview(|preview| {
                                preview.render(StoredExtent::All(&path), &readers, "")
                            }),
                        SpillFileEnd::Part { path, bytes, why } => self.render_preview(|preview| {
                            preview.render(StoredExtent::Part(&path, bytes), &readers, &why)
                        }),
                        SpillFileEnd::Failed(why) => {
                            self.render_preview(|preview| preview.render_unstored(&why))
                        }
                    }
                }
            },
        )
    }

    async fn append(&mut self, clean: &[u8]) {
        if clean.is_empty() {
            return;
        }
        self.bytes += clean.len() as u64;
        self.line_ends += memchr::memchr_iter(b'\n', clean).count() as u64;
        self.last = clean.last().copied();
        if let Some(made) = &self.shared {
            self.deltas.push(clean, &*made.site.listener);
        }
        let (held, further) = clean.split_at(clean.len().min(HEAD_BYTES - self.head.len()));
        self.head.extend_from_slice(held);
        self.tail.extend(further);
        self.tail
            .drain(..self.tail.len().saturating_sub(TAIL_BYTES));
        if further.is_empty() {
            return;
        }
        if let SpillTarget::Memory = self.target {
            self.target = self.open_file().await;
        }
        if let SpillTarget::File(sink) = &mut self.target {
            sink.push(further).await;
        }
    }

    /// Begins the file with what is held.
    async fn open_file(&mut self) -> SpillTarget {
        let Some(made) = &self.shared else {
            return SpillTarget::Discarded("there is no session that keeps more".to_owned());
        };
        let number = match self.number {
            0 => String::new(),
            number => format!("-{}", number + 1),
        };
        let ending = if self.is_binary() { "bin" } else { "txt" };
        let path = made
            .site
            .folder
            .join(&format!("{}{number}.{ending}", made.site.name));
        match path {
            Ok(path) => {
                let mut sink = SpillFile::open(&made.site, path);
                sink.push(&self.head).await;
                SpillTarget::File(sink)
            }
            Err(error) => SpillTarget::Discarded(error.to_string()),
        }
    }

    fn is_binary(&self) -> bool {
        self.head.contains(&0)
    }

    fn render_preview(&self, tell: impl FnOnce(Preview<'_>) -> String) -> String {
        let lines = match self.last {
            Some(b'\n') | None => self.line_ends,
            Some(_) => self.line_ends + 1,
        };
        // The end begins in the middle of a line, and perhaps of a character.
        let tail: Vec<u8> = self
            .tail
            .iter()
            .copied()
            .skip_while(|byte| byte & 0xc0 == 0x80)
            .collect();
        let head = String::from_utf8_lossy(&self.head);
        let tail = String::from_utf8_lossy(&tail);
        let around = (!self.is_binary()).then_some((&*head, &*tail));
        tell(Preview::of_ends(self.bytes, lines, around))
    }
}

#[cfg(test)]
mod tests;
