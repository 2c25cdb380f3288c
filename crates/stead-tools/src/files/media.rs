//! The types of files by their names, and how each is shown to a model.
//!
//! Effects: none.

/// How a file is shown to a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileDisplay {
    /// As lines of text.
    Text,
    /// As an image, a document, audio or video.
    Media {
        /// The size limit: a larger file is refused.
        max_bytes: u64,
    },
}

const IMAGE: FileDisplay = FileDisplay::Media {
    max_bytes: 5 * 1024 * 1024,
};
const OTHER_MEDIA: FileDisplay = FileDisplay::Media {
    max_bytes: 20 * 1024 * 1024,
};

/// The known types: extension, MIME type, and how such a file is shown.
#[rustfmt::skip]
const TYPES: &[(&str, &str, FileDisplay)] = &[
    ("png", "image/png", IMAGE), ("jpg", "image/jpeg", IMAGE), ("jpeg", "image/jpeg", IMAGE),
    ("gif", "image/gif", IMAGE), ("webp", "image/webp", IMAGE),
    ("pdf", "application/pdf", OTHER_MEDIA),
    ("wav", "audio/wav", OTHER_MEDIA), ("mp3", "audio/mpeg", OTHER_MEDIA), ("aac", "audio/aac", OTHER_MEDIA),
    ("ogg", "audio/ogg", OTHER_MEDIA), ("flac", "audio/flac", OTHER_MEDIA), ("aiff", "audio/aiff", OTHER_MEDIA),
    ("m4a", "audio/mp4", OTHER_MEDIA),
    ("mp4", "video/mp4", OTHER_MEDIA), ("mpeg", "video/mpeg", OTHER_MEDIA), ("mpg", "video/mpeg", OTHER_MEDIA),
    ("mov", "video/quicktime", OTHER_MEDIA), ("avi", "video/x-msvideo", OTHER_MEDIA), ("webm", "video/webm", OTHER_MEDIA),
    ("mkv", "video/x-matroska", OTHER_MEDIA),
    ("html", "text/html", FileDisplay::Text), ("css", "text/css", FileDisplay::Text), ("csv", "text/csv", FileDisplay::Text),
    ("md", "text/markdown", FileDisplay::Text), ("js", "text/javascript", FileDisplay::Text), ("svg", "image/svg+xml", FileDisplay::Text),
    ("json", "application/json", FileDisplay::Text), ("xml", "application/xml", FileDisplay::Text),
    ("yaml", "application/yaml", FileDisplay::Text), ("yml", "application/yaml", FileDisplay::Text),
    ("toml", "application/toml", FileDisplay::Text),
    ("zip", "application/zip", FileDisplay::Text), ("gz", "application/gzip", FileDisplay::Text),
    ("tar", "application/x-tar", FileDisplay::Text), ("wasm", "application/wasm", FileDisplay::Text),
    ("sqlite", "application/vnd.sqlite3", FileDisplay::Text), ("db", "application/vnd.sqlite3", FileDisplay::Text),
];

/// Returns the MIME type for a file name, and how such a file is shown.
pub(super) fn file_type(name: &str) -> (Option<&'static str>, FileDisplay) {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let known = TYPES
        .iter()
        .find(|(known, ..)| extension.eq_ignore_ascii_case(known));
    known.map_or((None, FileDisplay::Text), |&(_, mime, shown)| {
        (Some(mime), shown)
    })
}
