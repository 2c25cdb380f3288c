//! Offloading of long texts.
//!
//! Effects: workspace files (writes).

use super::{MAX_INLINE_BYTES, Offload, OffloadFailure};
use stead_core::{Block, text_tokens};
use stead_tools::{Preview, PreviewKind};
use stead_vfs::Expect;

impl Offload {
    /// Moves the texts of `content` to the file `name` if together they have more than `limit`
    /// tokens.
    pub(super) async fn offload_text(
        &self,
        kind: PreviewKind,
        name: &str,
        content: Vec<Block>,
        limit: u64,
    ) -> Vec<Block> {
        if !is_longer(&content, limit) {
            return content;
        }
        let text = self
            .redactor
            .redact_owned(texts(&content).collect::<Vec<_>>().join("\n\n"));
        let preview = Preview::of(kind, &text, limit);
        let stored = match self.folder.join(name) {
            Ok(path) => {
                // A call that runs again after a crash writes the same file again.
                let put = self.put(&path, text.clone().into(), Expect::Any).await;
                put.map(|()| preview.render_stored(&path, &self.readers))
            }
            Err(error) => Err(OffloadFailure::Failed(error.to_string())),
        };
        match stored {
            Ok(preview) => replace_text(content, preview),
            Err(OffloadFailure::Failed(_)) if text.len() < MAX_INLINE_BYTES => content,
            Err(failure) => replace_text(content, preview.render_unstored(&failure.into_text())),
        }
    }
}

fn texts(content: &[Block]) -> impl Iterator<Item = &str> {
    content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    })
}

fn is_longer(content: &[Block], limit: u64) -> bool {
    // A text has at most as many tokens as bytes, so the tokens of a short one need not be counted.
    let bytes: usize = texts(content).map(str::len).sum();
    bytes as u64 > limit && texts(content).map(text_tokens).sum::<u64>() > limit
}

/// Replaces the first text by `text` and removes the others.
fn replace_text(content: Vec<Block>, text: String) -> Vec<Block> {
    let mut text = Some(text);
    let blocks = content.into_iter().filter_map(|block| match block {
        Block::Text { .. } => text.take().map(Block::text),
        other => Some(other),
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_counts_for_more_than_a_token() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            // Sequences of letters that are not words take more tokens.
            let text = c.to_string().repeat(if c.is_ascii() { 100 } else { 1 });
            assert!(text_tokens(&text) <= text.len() as u64, "{c:?}");
        }
    }
}
