//! Where output goes.

use futures_util::future::BoxFuture;

/// Takes output as it comes.
pub trait OutputSink: Send {
    /// Takes `piece` in, and waits where it must: whoever writes it then waits, too.
    fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, SinkState>;
}

/// Whether more is kept of what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkState {
    /// It is.
    Accepting,
    /// It is not: whoever goes on writing works for nothing.
    Full,
}
