//! The contract of a receiver of a command's output.
//!
//! Effects: none.

use futures_util::future::BoxFuture;

/// Receives output as it arrives.
pub trait OutputSink: Send {
    /// Takes `piece`. While this waits, the command that writes is blocked too.
    fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, SinkState>;

    /// Hears that nothing has come for a moment, so that what was held back can be shown.
    fn pause(&mut self) {}
}

/// Whether a sink takes more output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkState {
    /// It takes more.
    Accepting,
    /// It takes no more: further output would be discarded.
    Full,
}
