//! Spills: output of any length, in memory of a fixed size.
//!
//! A [`Spill`] holds the beginning and the end of what is written to it. What does not fit goes to
//! a file while it is written, up to a limit. Listeners receive the newest part a few times a second.
//!
//! Effects: the clock, workspace files (writes).

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

/// The bytes of the beginning that are held. A shorter output needs no file.
const HEAD_BYTES: usize = 96 * 1024;
/// The bytes of the end that are held.
const TAIL_BYTES: usize = 64 * 1024;
/// The largest piece that is taken at once; longer ones are split.
const PIECE_BYTES: usize = 32 * 1024;

/// Where the long output of one call goes.
pub struct SpillSite {
    /// The files of the session, without file rules.
    pub files: Arc<dyn Vfs>,
    /// The folder for the files.
    pub folder: VPath,
    /// The name of the file without its extension.
    pub name: String,
    /// The most bytes of the file.
    pub cap_bytes: u64,
    /// The quota of all files of the session.
    pub quota: Arc<Quota>,
    /// Removes secrets before anything is written.
    pub redactor: Redactor,
    /// The tools with which the model can read the rest.
    pub readers: ReadTools,
    /// Receives the newest part.
    pub listener: Arc<dyn Fn(String) + Send + Sync>,
}

impl SpillSite {
    /// The most bytes of a file, unless set otherwise.
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

/// Makes the spills of one call. Outside a session only the ends are kept.
#[derive(Debug, Clone, Default)]
pub struct SpillFactory(Option<Arc<SpillShared>>);

#[derive(Debug)]
struct SpillShared {
    site: SpillSite,
    count: AtomicU32,
}

impl SpillFactory {
    /// A factory of spills that write to `site`.
    pub fn at(site: SpillSite) -> Self {
        Self(Some(Arc::new(SpillShared {
            site,
            count: AtomicU32::new(0),
        })))
    }

    /// Returns a new spill with a file of its own.
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
    /// The length of all that was written, without secrets.
    bytes: u64,
    line_ends: u64,
    last: Option<u8>,
    target: SpillTarget,
    deltas: OutputDeltas,
}

/// Where the part that does not fit into memory goes.
enum SpillTarget {
    /// Nowhere yet: everything fits so far.
    Memory,
    /// To a file.
    File(SpillFile),
    /// Nowhere, for this reason.
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

    fn pause(&mut self) {
        self.tell_rest();
    }
}

impl Spill {
    /// Writes `piece`, and waits while the file is slower than the writer.
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

    /// Tells the listener what was held back.
    pub(crate) fn tell_rest(&mut self) {
        if let Some(made) = &self.shared {
            self.deltas.flush(&*made.site.listener);
        }
    }

    /// Returns all that was written if it fits into memory, and otherwise its two ends and where the
    /// file is.
    pub async fn finish(mut self) -> Output {
        let rest = self.redactor.finish();
        self.append(&rest).await;
        self.tell_rest();
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

    /// Begins the file with the part that is held.
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
        // The end may begin in the middle of a line, or of a character.
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
