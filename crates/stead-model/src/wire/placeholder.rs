//! Words that stand where something cannot be sent.

use stead_core::Media;

/// An assistant message of which nothing can be shown to this provider. Every provider refuses
/// empty ones.
pub(crate) const NO_ANSWER: &str = "(no visible answer)";
/// A user message without content.
pub(crate) const NO_INPUT: &str = "(no content)";
/// A tool result without content.
pub(crate) const NO_OUTPUT: &str = "(no output)";

/// Stands for media that the provider does not take.
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
