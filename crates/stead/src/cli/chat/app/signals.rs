//! Signals that the interface heeds.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) enum Signalled {
    /// As Ctrl-C, from another process.
    Interrupt,
    /// Leave, after the run has wound up.
    Leave,
}

pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    pub(super) fn watch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signalled {
        tokio::select! {
            _ = self.interrupt.recv() => Signalled::Interrupt,
            _ = self.terminate.recv() => Signalled::Leave,
            _ = self.hangup.recv() => Signalled::Leave,
        }
    }
}
