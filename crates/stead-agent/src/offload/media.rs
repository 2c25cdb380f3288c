//! Images, documents, sounds: each content once.

use super::{MAX_INLINE_BYTES, Offload, OffloadFailure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use stead_core::{Block, Media, media_tokens};
use stead_vfs::{ContentHash, Expect, FileKind, VPath};

/// What files of a type end with.
#[rustfmt::skip]
const FILE_EXTENSIONS: &[(&str, &str)] = &[
    ("image/png", "png"), ("image/jpeg", "jpg"), ("image/gif", "gif"), ("image/webp", "webp"),
    ("application/pdf", "pdf"),
    ("audio/wav", "wav"), ("audio/x-wav", "wav"), ("audio/mpeg", "mp3"), ("audio/mp3", "mp3"), ("audio/aac", "aac"),
    ("audio/ogg", "ogg"), ("audio/flac", "flac"), ("audio/aiff", "aiff"), ("audio/mp4", "m4a"),
    ("video/mp4", "mp4"), ("video/mpeg", "mpeg"), ("video/quicktime", "mov"), ("video/x-msvideo", "avi"),
    ("video/webm", "webm"), ("video/x-matroska", "mkv"),
];

/// Media in words, where they cannot be shown.
pub(super) fn media_placeholder(media: &Media, why: &str) -> Block {
    let name = media
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" {name}"));
    Block::text(format!("[{}{name}: {why}]", media.mime))
}

impl Offload {
    /// `content` with the data of its media in files.
    pub(super) async fn offload_media(&self, content: Vec<Block>) -> Vec<Block> {
        let mut stays = Vec::with_capacity(content.len());
        for block in content {
            stays.push(match block {
                Block::Media(media) if !media.data.is_empty() => self.store_media(media).await,
                other => other,
            });
        }
        stays
    }

    /// A reference to the file that holds the media's data.
    async fn store_media(&self, media: Media) -> Block {
        // Whatever is not strictly base64 would come back as other bytes.
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
            Err(unkept) => media_placeholder(&media, &format!("left out: {}", unkept.into_text())),
        }
    }

    async fn put_media(
        &self,
        mime: &str,
        bytes: Vec<u8>,
        hash: ContentHash,
    ) -> Result<VPath, OffloadFailure> {
        let ending = FILE_EXTENSIONS
            .iter()
            .find(|(known, _)| *known == mime)
            .map_or("bin", |(_, ending)| ending);
        let path = self.folder.join(&format!("media/{hash}.{ending}"));
        let path = path.map_err(|error| OffloadFailure::Failed(error.to_string()))?;
        let is_there = self
            .files
            .stat(&path)
            .await
            .is_ok_and(|stat| stat.kind == FileKind::File);
        if !is_there {
            self.put(&path, bytes.into(), Expect::Absent).await?;
        }
        Ok(path)
    }
}

/// The bytes and their hash, on a thread where that may take a while.
async fn decode_media(data: String) -> Option<(Vec<u8>, ContentHash)> {
    let decode = move || {
        let bytes = BASE64_STANDARD.decode(&data).ok()?;
        let hash = ContentHash::of(&bytes);
        Some((bytes, hash))
    };
    tokio::task::spawn_blocking(decode).await.ok().flatten()
}
