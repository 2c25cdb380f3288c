//! What a file is, by its name.

/// How a file is shown to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shown {
    /// As lines of text.
    Text,
    /// As a picture, document, sound or film.
    Media {
        /// A larger one is refused.
        max_bytes: u64,
    },
}

const MAX_IMAGE: Shown = Shown::Media {
    max_bytes: 5 * 1024 * 1024,
};
const MAX_OTHER: Shown = Shown::Media {
    max_bytes: 20 * 1024 * 1024,
};

/// Extension, MIME type, and how it is shown.
#[rustfmt::skip]
const TYPES: &[(&str, &str, Shown)] = &[
    ("png", "image/png", MAX_IMAGE), ("jpg", "image/jpeg", MAX_IMAGE), ("jpeg", "image/jpeg", MAX_IMAGE),
    ("gif", "image/gif", MAX_IMAGE), ("webp", "image/webp", MAX_IMAGE),
    ("pdf", "application/pdf", MAX_OTHER),
    ("wav", "audio/wav", MAX_OTHER), ("mp3", "audio/mpeg", MAX_OTHER), ("aac", "audio/aac", MAX_OTHER),
    ("ogg", "audio/ogg", MAX_OTHER), ("flac", "audio/flac", MAX_OTHER), ("aiff", "audio/aiff", MAX_OTHER),
    ("m4a", "audio/mp4", MAX_OTHER),
    ("mp4", "video/mp4", MAX_OTHER), ("mpeg", "video/mpeg", MAX_OTHER), ("mpg", "video/mpeg", MAX_OTHER),
    ("mov", "video/quicktime", MAX_OTHER), ("avi", "video/x-msvideo", MAX_OTHER), ("webm", "video/webm", MAX_OTHER),
    ("mkv", "video/x-matroska", MAX_OTHER),
    ("html", "text/html", Shown::Text), ("css", "text/css", Shown::Text), ("csv", "text/csv", Shown::Text),
    ("md", "text/markdown", Shown::Text), ("js", "text/javascript", Shown::Text), ("svg", "image/svg+xml", Shown::Text),
    ("json", "application/json", Shown::Text), ("xml", "application/xml", Shown::Text),
    ("yaml", "application/yaml", Shown::Text), ("yml", "application/yaml", Shown::Text),
    ("toml", "application/toml", Shown::Text),
    ("zip", "application/zip", Shown::Text), ("gz", "application/gzip", Shown::Text),
    ("tar", "application/x-tar", Shown::Text), ("wasm", "application/wasm", Shown::Text),
    ("sqlite", "application/vnd.sqlite3", Shown::Text), ("db", "application/vnd.sqlite3", Shown::Text),
];

/// The MIME type that the name tells, and how such a file is shown.
pub(super) fn by_name(name: &str) -> (Option<&'static str>, Shown) {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = TYPES
        .iter()
        .find(|(known, ..)| extension.eq_ignore_ascii_case(known));
    known.map_or((None, Shown::Text), |&(_, mime, shown)| (Some(mime), shown))
}
