//! Offloading of media: images, documents and sounds. Equal content is stored once.
//!
//! Effects: workspace files (writes).

use super::{MAX_INLINE_BYTES, Offload, OffloadFailure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use stead_core::{Block, Media, media_tokens};
use stead_vfs::{ContentHash, Expect, FileKind, VPath};

/// File extensions by media type.
#[rustfmt::skip]
const FILE_EXTENSIONS: &[(&str, &str)] = &[
    ("image/png", "png"), ("image/jpeg", "jpg"), ("image/gif", "gif"), ("image/webp", "webp"),
    ("application/pdf", "pdf"),
    ("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3"), ("audio/aac", "aac"),
    ("audio/ogg", "ogg"), ("audio/flac", "flac"), ("audio/aiff", "aiff"), ("audio/mp4", "m4a"),
    ("video/mp4", "mp4"), ("video/mpeg", "mpeg"), ("video/quicktime", "mov"), ("video/x-msvideo", "avi"),
    ("video/webm", "webm"), ("video/x-matroska", "mkv"),
];

/// Returns a text block that stands for media that cannot be shown.
pub(super) fn media_placeholder(media: &Media, why: &str) -> Block {
    Block::text(format!("[{}: {why}]", media.label()))
}

impl Offload {
    /// Returns `content` with the data of its media moved to files.
    pub(super) async fn offload_media(&self, content: Vec<Block>) -> Vec<Block> {
        let mut blocks = Vec::with_capacity(content.len());
        for block in content {
            blocks.push(match block {
                Block::Media(media) if !media.data.is_empty() => self.store_media(media).await,
                other => other,
            });
        }
        blocks
    }

    /// Stores the data of media in a file and returns a block that refers to it.
    async fn store_media(&self, media: Media) -> Block {
        // Data that is not strict base64 would be different after decoding and encoding.
        let Some((bytes, hash)) = decode_media(media.data.clone()).await else {
            return Block::Media(media);
        };
        match self.put_media(&media.mime, bytes, hash).await {
            Ok(path) => {
                let tokens = Some(media_tokens(&media));
                Block::Media(Media {
                    data: String::new(),
                    file: Some(path.to_string()),
                    tokens,
                    ..media
                })
            }
            Err(OffloadFailure::Failed(_)) if media.data.len() < MAX_INLINE_BYTES => {
                Block::Media(media)
            }
            Err(failure) => {
                media_placeholder(&media, &format!("left out: {}", failure.into_text()))
            }
        }
    }

    /// Writes the bytes to a file named by their hash, unless it exists.
    async fn put_media(
        &self,
        mime: &str,
        bytes: Vec<u8>,
        hash: ContentHash,
    ) -> Result<VPath, OffloadFailure> {
        let extension = FILE_EXTENSIONS
            .iter()
            .find(|(known, _)| *known == mime)
            .map_or("bin", |(_, extension)| extension);
        let path = self.folder.join(&format!("media/{hash}.{extension}"));
        let path = path.map_err(|error| OffloadFailure::Failed(error.to_string()))?;
        let exists = self
            .files
            .stat(&path)
            .await
            .is_ok_and(|stat| stat.kind == FileKind::File);
        if !exists {
            self.put(&path, bytes.into(), Expect::Absent).await?;
        }
        Ok(path)
    }
}

/// Decodes the data and computes its hash, on a thread for blocking work.
async fn decode_media(data: String) -> Option<(Vec<u8>, ContentHash)> {
    let decode = move || {
        let bytes = BASE64_STANDARD.decode(&data).ok()?;
        let hash = ContentHash::of(&bytes);
        Some((bytes, hash))
    };
    tokio::task::spawn_blocking(decode).await.ok().flatten()
}
