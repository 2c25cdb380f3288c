//! Media by what a provider can do with them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use stead_core::Media;

/// What a piece of media is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An image in one of the four formats that every provider reads.
    Image,
    Pdf,
    Wav,
    Mp3,
    /// A text file, decoded.
    Text(String),
    Other,
}

/// Tells what `media` is, by its MIME type.
pub(super) fn kind(media: &Media) -> Kind {
    let mime = media.mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match mime.as_str() {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => Kind::Image,
        "application/pdf" => Kind::Pdf,
        "audio/wav" | "audio/x-wav" | "audio/wave" => Kind::Wav,
        "audio/mpeg" | "audio/mp3" => Kind::Mp3,
        "application/json" | "application/xml" | "application/yaml" | "image/svg+xml" => text(media),
        _ if mime.starts_with("text/") => text(media),
        _ => Kind::Other,
    }
}

fn text(media: &Media) -> Kind {
    let bytes = STANDARD.decode(&media.data).ok();
    bytes.and_then(|bytes| String::from_utf8(bytes).ok()).map_or(Kind::Other, Kind::Text)
}

/// A text file as part of a message.
pub(super) fn inline(media: &Media, text: &str) -> String {
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
    fn media_are_told_apart_by_type_and_text_is_decoded() {
        let cases = [
            ("image/PNG", "AA==", Kind::Image),
            ("application/pdf", "AA==", Kind::Pdf),
            ("audio/x-wav", "AA==", Kind::Wav),
            ("audio/mpeg", "AA==", Kind::Mp3),
            ("text/csv; charset=utf-8", "YSxi", Kind::Text("a,b".into())),
            ("text/plain", "/w==", Kind::Other),
            ("text/plain", "not base64", Kind::Other),
            ("image/tiff", "AA==", Kind::Other),
            ("video/mp4", "AA==", Kind::Other),
        ];
        for (mime, data, want) in cases {
            assert_eq!(kind(&Media::inline(mime, data, None)), want, "{mime}");
        }
    }
}
