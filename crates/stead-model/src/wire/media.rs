//! Media in requests: the form in which each is sent, and what a model is not shown.
//!
//! Effects: none.

use super::placeholder;
use crate::{Abilities, Ability};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::borrow::Cow;
use stead_core::{Block, Media, Message, ToolResult};

/// The format of a piece of media.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MediaFormat {
    /// An image in one of the four formats that every provider reads.
    Image,
    Pdf,
    Wav,
    Mp3,
    /// A text file, decoded.
    Text(String),
    Other,
}

/// Returns the format of `media` by its MIME type.
pub(super) fn media_format(media: &Media) -> MediaFormat {
    let mime = media
        .mime
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    match mime.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => MediaFormat::Image,
        "application/pdf" => MediaFormat::Pdf,
        "audio/wav" | "audio/x-wav" | "audio/wave" => MediaFormat::Wav,
        "audio/mpeg" | "audio/mp3" => MediaFormat::Mp3,
        "application/json" | "application/xml" | "application/yaml" | "image/svg+xml" => {
            text_format(media)
        }
        _ if mime.starts_with("text/") => text_format(media),
        _ => MediaFormat::Other,
    }
}

/// Returns the message as a model with these abilities can receive it.
pub(super) fn visible_message(message: &Message, abilities: Abilities) -> Cow<'_, Message> {
    let hidden =
        |block: &Block| matches!(block, Block::Media(media) if is_hidden(media, abilities));
    let shown = |blocks: &[Block]| {
        blocks
            .iter()
            .map(|block| visible_block(block, abilities))
            .collect::<Vec<Block>>()
    };
    match message {
        Message::User { content } if content.iter().any(hidden) => Cow::Owned(Message::User {
            content: shown(content),
        }),
        Message::Tool { results }
            if results
                .iter()
                .flat_map(|result| &result.content)
                .any(hidden) =>
        {
            let of = |result: &ToolResult| ToolResult {
                content: shown(&result.content),
                ..result.clone()
            };
            Cow::Owned(Message::Tool {
                results: results.iter().map(of).collect(),
            })
        }
        Message::User { .. } | Message::Assistant { .. } | Message::Tool { .. } => {
            Cow::Borrowed(message)
        }
    }
}

fn visible_block(block: &Block, abilities: Abilities) -> Block {
    match block {
        Block::Media(media) if is_hidden(media, abilities) => {
            Block::text(placeholder::for_media(media))
        }
        Block::Text { .. } | Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => {
            block.clone()
        }
    }
}

fn is_hidden(media: &Media, abilities: Abilities) -> bool {
    match media_format(media) {
        MediaFormat::Image => !abilities.has(Ability::Images),
        MediaFormat::Pdf => !abilities.has(Ability::Documents),
        MediaFormat::Wav | MediaFormat::Mp3 => !abilities.has(Ability::Audio),
        MediaFormat::Text(_) | MediaFormat::Other => false,
    }
}

fn text_format(media: &Media) -> MediaFormat {
    let bytes = STANDARD.decode(&media.data).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .map_or(MediaFormat::Other, MediaFormat::Text)
}

/// Returns a text file as part of a message.
pub(super) fn inline_text(media: &Media, text: &str) -> String {
    format!("{}:\n{text}", label(media))
}

fn label(media: &Media) -> String {
    match &media.name {
        Some(name) => format!("{name} ({})", media.mime),
        None => media.mime.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_model_cannot_look_at_is_replaced_by_words() {
        let image = Block::Media(Media::inline("image/png", "AA==", Some("a.png".into())));
        let pdf = Block::Media(Media::inline("application/pdf", "AA==", None));
        let message = Message::User {
            content: vec![Block::text("look"), image.clone(), pdf],
        };
        let all = visible_message(&message, "images,documents".parse().unwrap()).into_owned();
        assert_eq!(all, message);
        let some = visible_message(&message, "images".parse().unwrap()).into_owned();
        let words =
            Block::text("[a file of type application/pdf is not shown: this model cannot read it]");
        assert_eq!(
            some,
            Message::User {
                content: vec![Block::text("look"), image, words]
            }
        );
    }

    #[test]
    fn media_are_told_apart_by_type_and_text_is_decoded() {
        let cases = [
            ("image/PNG", "AA==", MediaFormat::Image),
            ("application/pdf", "AA==", MediaFormat::Pdf),
            ("audio/x-wav", "AA==", MediaFormat::Wav),
            ("audio/mpeg", "AA==", MediaFormat::Mp3),
            (
                "text/csv; charset=utf-8",
                "YSxi",
                MediaFormat::Text("a,b".into()),
            ),
            ("text/plain", "/w==", MediaFormat::Other),
            ("text/plain", "not base64", MediaFormat::Other),
            ("image/tiff", "AA==", MediaFormat::Other),
            ("video/mp4", "AA==", MediaFormat::Other),
        ];
        for (mime, data, want) in cases {
            assert_eq!(
                media_format(&Media::inline(mime, data, None)),
                want,
                "{mime}"
            );
        }
    }
}
