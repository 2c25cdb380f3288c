//! Loading the data of offloaded media into messages for the model.
//!
//! Effects: workspace files (reads).

use super::media::media_placeholder;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use stead_core::{Block, Media, Message, ToolResult};
use stead_vfs::{ReadRange, VPath, Vfs, VfsError};

/// The most bytes of base64 in one request; no provider accepts more. The oldest media are left
/// out.
const MAX_REQUEST_BYTES: usize = 64 * 1024 * 1024;
/// The size of the largest file that is read. Offloaded media are never larger.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Loads the media of messages, each once in a run. A message that was sent before is returned as
/// the same `Arc`, so that its encoding can be reused.
#[derive(Debug)]
pub(crate) struct MediaLoader {
    files: Arc<dyn Vfs>,
    /// The folder of the runtime state.
    runtime: VPath,
    max_bytes: usize,
    sent: Vec<LoadedMessage>,
}

/// A message that was sent.
#[derive(Debug)]
struct LoadedMessage {
    /// The message as it is recorded.
    message: Arc<Message>,
    /// The message with its media.
    loaded: Arc<Message>,
    /// The size of the loaded media.
    bytes: usize,
}

impl MediaLoader {
    /// Creates a loader that reads from `files`; `runtime` is the folder of the runtime state.
    pub(crate) fn new(files: Arc<dyn Vfs>, runtime: VPath) -> Self {
        Self {
            files,
            runtime,
            max_bytes: MAX_REQUEST_BYTES,
            sent: Vec::new(),
        }
    }

    /// Returns the messages with their media.
    pub(crate) async fn load(&mut self, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let is_same =
            |(sent, message): &(&LoadedMessage, &Arc<Message>)| Arc::ptr_eq(&sent.message, message);
        let known = self.sent.iter().zip(&messages).take_while(is_same).count();
        self.sent.truncate(known);
        for message in messages.into_iter().skip(known) {
            let (loaded, bytes) = self.load_message(&message).await;
            self.sent.push(LoadedMessage {
                message,
                loaded,
                bytes,
            });
            if bytes > 0 {
                self.evict();
            }
        }
        self.sent.iter().map(|sent| sent.loaded.clone()).collect()
    }

    /// Leaves out the oldest media if there are too many. Half of them are left out at once,
    /// because each change invalidates the provider's cache for all that follows.
    fn evict(&mut self) {
        let mut total: usize = self.sent.iter().map(|sent| sent.bytes).sum();
        if total <= self.max_bytes {
            return;
        }
        let newest = self.sent.len() - 1;
        for sent in self.sent[..newest].iter_mut().filter(|sent| sent.bytes > 0) {
            if total <= self.max_bytes / 2 {
                break;
            }
            let placeholder = |media: &Media| {
                let file = media.file.as_deref().unwrap_or_default();
                media_placeholder(
                    media,
                    &format!("left out of this request, which would be too large; it is in {file}"),
                )
            };
            sent.loaded = Arc::new(with_media(&sent.message, &mut |media| placeholder(media)));
            total -= std::mem::take(&mut sent.bytes);
        }
    }

    async fn load_message(&self, message: &Arc<Message>) -> (Arc<Message>, usize) {
        let mut files: Vec<Block> = Vec::new();
        let mut bytes = 0;
        for media in file_references(message) {
            let block = self.load_block(media).await;
            if let Block::Media(media) = &block {
                bytes += media.data.len();
            }
            files.push(block);
        }
        if files.is_empty() {
            return (message.clone(), 0);
        }
        let mut files = files.into_iter();
        let loaded = with_media(message, &mut |media| {
            files.next().unwrap_or_else(|| Block::Media(media.clone()))
        });
        (Arc::new(loaded), bytes)
    }

    /// Returns the media with their data, or a placeholder if it cannot be read.
    async fn load_block(&self, media: &Media) -> Block {
        let file = media.file.as_deref().unwrap_or_default();
        let read = match VPath::parse(file) {
            Ok(path) if self.is_offloaded(&path) => {
                self.files
                    .read(
                        &path,
                        ReadRange {
                            offset: 0,
                            len: MAX_FILE_BYTES + 1,
                        },
                    )
                    .await
            }
            Ok(path) => Err(VfsError::Denied(path)),
            Err(error) => Err(error.into()),
        };
        match read {
            Ok((data, _)) if data.len() as u64 > MAX_FILE_BYTES => {
                let mb = MAX_FILE_BYTES / (1024 * 1024);
                media_placeholder(media, &format!("its file {file} is larger than {mb} MB"))
            }
            // Equal to media that were never offloaded, so that requests do not depend on it.
            Ok((data, _)) => {
                let data = BASE64_STANDARD.encode(&data);
                Block::Media(Media::inline(media.mime.clone(), data, media.name.clone()))
            }
            Err(VfsError::NotFound(path)) => {
                media_placeholder(media, &format!("its file {path} is missing"))
            }
            Err(error) => media_placeholder(media, &format!("its file cannot be read: {error}")),
        }
    }

    /// Whether `path` is in an offload folder. A journal from elsewhere must not make other files
    /// readable.
    fn is_offloaded(&self, path: &VPath) -> bool {
        let rest = path
            .as_str()
            .strip_prefix(self.runtime.as_str())
            .unwrap_or_default();
        let mut names = rest.split('/').filter(|name| !name.is_empty());
        self.runtime.contains(path)
            && (names.next(), names.nth(1)) == (Some("agents"), Some("offload"))
    }
}

fn is_file_reference(media: &Media) -> bool {
    media.data.is_empty() && media.file.is_some()
}

/// Returns the media of a message whose data is in files.
fn file_references(message: &Message) -> impl Iterator<Item = &Media> {
    let (own, results): (&[Block], &[ToolResult]) = match message {
        Message::User { content } | Message::Assistant { content } => (content, &[]),
        Message::Tool { results } => (&[], results),
    };
    let blocks = own
        .iter()
        .chain(results.iter().flat_map(|result| &result.content));
    blocks.filter_map(|block| match block {
        Block::Media(media) if is_file_reference(media) => Some(media),
        Block::Media(_) | Block::Text { .. } | Block::Thinking(_) | Block::ToolCall(_) => None,
    })
}

/// Returns the message with each media that refers to a file replaced by the result of `replace`.
fn with_media(message: &Message, replace: &mut dyn FnMut(&Media) -> Block) -> Message {
    let mut blocks = |content: &[Block]| {
        let block = |block: &Block| match block {
            Block::Media(media) if is_file_reference(media) => replace(media),
            other => other.clone(),
        };
        content.iter().map(block).collect()
    };
    match message {
        Message::User { content } => Message::User {
            content: blocks(content),
        },
        Message::Assistant { content } => Message::Assistant {
            content: blocks(content),
        },
        Message::Tool { results } => {
            let result = |result: &ToolResult| ToolResult {
                content: blocks(&result.content),
                ..result.clone()
            };
            Message::Tool {
                results: results.iter().map(result).collect(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
