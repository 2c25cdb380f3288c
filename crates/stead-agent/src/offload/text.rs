//! Long texts.

use super::{MAX_INLINE_BYTES, Offload, OffloadFailure};
use stead_core::{Block, text_tokens};
use stead_tools::{Preview, PreviewKind};
use stead_vfs::Expect;

impl Offload {
    /// `content` with its texts in the file `name`, if together they have more than `limit` tokens.
    pub(super) async fn offload_text(
        &self,
        noun: PreviewKind,
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
        let preview = Preview::of(noun, &text, limit);
        let kept = match self.folder.join(name) {
            Ok(path) => {
                // A call that is run again after a crash says it again.
                let put = self.put(&path, text.clone().into(), Expect::Any).await;
                put.map(|()| preview.render_stored(&path, &self.readers))
            }
            Err(error) => Err(OffloadFailure::Failed(error.to_string())),
        };
        match kept {
            Ok(shown) => replace_text(content, shown),
            Err(OffloadFailure::Failed(_)) if text.len() < MAX_INLINE_BYTES => content,
            Err(unkept) => replace_text(content, preview.render_unstored(&unkept.into_text())),
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
    // No byte is more than a token: what is short need not be looked at letter by letter.
    let bytes: usize = texts(content).map(str::len).sum();
    bytes as u64 > limit && texts(content).map(text_tokens).sum::<u64>() > limit
}

/// `shown` in place of the first text, and none of the others.
fn replace_text(content: Vec<Block>, shown: String) -> Vec<Block> {
    let mut shown = Some(shown);
    let stays = content.into_iter().filter_map(|block| match block {
        Block::Text { .. } => shown.take().map(Block::text),
        other => Some(other),
    });
    stays.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_byte_counts_for_more_than_a_token() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            // Letters in a row that are no word are dearer.
            let text = c.to_string().repeat(if c.is_ascii() { 100 } else { 1 });
            assert!(text_tokens(&text) <= text.len() as u64, "{c:?}");
        }
    }
}
