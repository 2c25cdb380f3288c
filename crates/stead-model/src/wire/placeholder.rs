//! Texts in place of content that cannot be sent.
//!
//! Effects: none.

use stead_core::Media;

/// For an assistant message without content for this provider. Every provider refuses empty ones.
pub(crate) const NO_ANSWER: &str = "(no visible answer)";
/// For a user message without content.
pub(crate) const NO_INPUT: &str = "(no content)";
/// For a tool result without content.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Returns the text in place of media that the provider does not accept.
pub(crate) fn for_media(media: &Media) -> String {
    match &media.name {
        Some(name) => format!(
            "[{name} ({}) is not shown: this model cannot read such files]",
            media.mime
        ),
        None => format!(
            "[a file of type {} is not shown: this model cannot read it]",
            media.mime
        ),
    }
}
