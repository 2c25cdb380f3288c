//! Token estimates for content that no provider has counted yet. They are rather high: compacting a
//! little early costs less than a refused request.
//!
//! Effects: none.

use crate::{Block, Media, Message, ToolSpec};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;

/// Tokens are counted in hundredths, so that a single letter counts.
const TOKEN_SCALE: u64 = 100;
/// The tokens that a provider adds to a message.
const MESSAGE_OVERHEAD_TOKENS: u64 = 6;
/// The tokens that a provider adds to a call and its result.
const CALL_OVERHEAD_TOKENS: u64 = 12;
/// Longer runs of letters and digits are not words: hashes, keys, base64.
const LONGEST_WORD: u32 = 20;

/// The tokens of media of unknown size.
const DEFAULT_MEDIA_TOKENS: u64 = 1_600;
/// The minimum and maximum that providers charge for one image.
const IMAGE_TOKEN_BOUNDS: (u64, u64) = (258, 4_800);
/// The tokens of a page of a document, shown as text and as an image.
const PAGE_TOKENS: u64 = 3_000;

/// Estimates the tokens of a text by script: Latin words are cheap, code and numbers more
/// expensive, and a Chinese character takes one or more.
pub fn text_tokens(text: &str) -> u64 {
    let mut sum = 0u64;
    let mut word = 0u32;
    let mut before = ' ';
    for c in text.chars() {
        word = if c.is_ascii_alphanumeric() {
            word + 1
        } else {
            0
        };
        sum += match c {
            ' ' | '\t' if before == c => 4,
            ' ' => 12,
            '\t' => 30,
            '\n' | '\r' => 45,
            'a'..='z' | 'A'..='Z' if word <= LONGEST_WORD => 28,
            '0'..='9' if word <= LONGEST_WORD => 45,
            'a'..='z' | 'A'..='Z' | '0'..='9' => 70,
            '\0'..='\x7f' => 60,
            // Latin with marks, Greek, Cyrillic.
            '\u{80}'..='\u{52f}' | '\u{1e00}'..='\u{1fff}' => 60,
            // Han, Kana, Hangul and their punctuation.
            '\u{2e80}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff00}'..='\u{ffef}'
            | '\u{20000}'..='\u{3ffff}' => 130,
            // Hebrew, Arabic, Indic, Thai and other alphabets.
            '\u{530}'..='\u{1dff}' => 100,
            '\u{2000}'..='\u{2e7f}' => 100,
            // Emoji and rarer characters.
            _ => 300,
        };
        before = c;
    }
    sum.div_ceil(TOKEN_SCALE)
}

/// Estimates the tokens of a message.
pub fn message_tokens(message: &Message) -> u64 {
    let tokens_of = |blocks: &[Block]| blocks.iter().map(block_tokens).sum::<u64>();
    MESSAGE_OVERHEAD_TOKENS
        + match message {
            Message::User { content: blocks } | Message::Assistant { content: blocks } => {
                tokens_of(blocks)
            }
            Message::Tool { results } => results
                .iter()
                .map(|result| {
                    // The id is sent back, too.
                    CALL_OVERHEAD_TOKENS + text_tokens(&result.id) + tokens_of(&result.content)
                })
                .sum(),
        }
}

fn block_tokens(block: &Block) -> u64 {
    match block {
        Block::Text { text } => text_tokens(text),
        Block::Media(media) => media_tokens(media),
        // The signature is the thinking, encrypted: about five bytes for a token.
        Block::Thinking(thinking) => text_tokens(&thinking.text).max(
            thinking
                .signature
                .as_ref()
                .map_or(0, |sealed| sealed.len() as u64 / 5),
        ),
        Block::ToolCall(call) => {
            CALL_OVERHEAD_TOKENS
                + text_tokens(&call.id)
                + text_tokens(&call.name)
                + text_tokens(&call.args.to_string())
        }
    }
}

/// Estimates the tokens of a tool's spec.
pub fn spec_tokens(spec: &ToolSpec) -> u64 {
    CALL_OVERHEAD_TOKENS
        + text_tokens(&spec.name)
        + text_tokens(&spec.description)
        + text_tokens(&spec.parameters.to_string())
}

/// Returns the bytes of a tool's spec as compact JSON, without what a provider adds.
pub fn spec_bytes(spec: &ToolSpec) -> usize {
    let parameters = &*spec.parameters;
    let shown = serde_json::json!({
        "name": spec.name, "description": spec.description, "parameters": parameters,
    });
    shown.to_string().len()
}

/// Estimates the tokens of an image, document, sound or video: from its content if possible, else
/// as recorded.
pub fn media_tokens(media: &Media) -> u64 {
    if media.data.is_empty() {
        return media.tokens.unwrap_or(DEFAULT_MEDIA_TOKENS);
    }
    let bytes = media.data.len() as u64 / 4 * 3;
    match media.mime.split('/').next() {
        Some("image") => image_tokens(&media.data),
        // Half a minute of common quality per 500 kB, at 32 tokens a second.
        Some("audio") => bytes / 500 + 32,
        Some("video") => bytes / 400 + 300,
        _ if media.mime == "application/pdf" => pdf_page_count(&media.data) * PAGE_TOKENS,
        _ => bytes / 3,
    }
}

/// Returns the greater of two rules, within bounds: one token per 750 pixels, or 85 and 170 for
/// each tile of 512 × 512.
fn image_tokens(data: &str) -> u64 {
    /// Enough of a file to hold its dimensions, in whole groups of base64.
    const HEAD: usize = 256 * 1024;
    let head = BASE64_STANDARD
        .decode(&data.as_bytes()[..data.len().min(HEAD) / 4 * 4])
        .unwrap_or_default();
    let Ok(size) = imagesize::blob_size(&head) else {
        return DEFAULT_MEDIA_TOKENS;
    };
    let width = size.width as u64;
    let height = size.height as u64;
    let tiles = width.div_ceil(512).saturating_mul(height.div_ceil(512));
    let pixels = width.saturating_mul(height) / 750;
    pixels
        .max(tiles.saturating_mul(170).saturating_add(85))
        .clamp(IMAGE_TOKEN_BOUNDS.0, IMAGE_TOKEN_BOUNDS.1)
}

/// Returns the number of pages of a PDF as far as its bytes show it, and at least one per 50 kB,
/// because compressed pages cannot be counted.
fn pdf_page_count(data: &str) -> u64 {
    let bytes = BASE64_STANDARD.decode(data).unwrap_or_default();
    let counted = [&b"/Type /Page"[..], b"/Type/Page"]
        .into_iter()
        .map(|mark| {
            let ends = |at: usize| {
                bytes
                    .get(at + mark.len())
                    .is_none_or(|next| !next.is_ascii_alphanumeric())
            };
            let found = bytes
                .windows(mark.len())
                .enumerate()
                .filter(|(at, window)| *window == mark && ends(*at));
            found.count() as u64
        });
    counted.sum::<u64>().max(bytes.len() as u64 / 50_000).max(1)
}
