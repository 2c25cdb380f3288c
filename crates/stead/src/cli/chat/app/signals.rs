//! Signals that `stead chat` handles.
//!
//! Effects: processes.

use tokio::signal::unix::{Signal, SignalKind, signal};

pub(super) enum ChatSignal {
    /// Like Ctrl-C, from another process.
    Interrupt,
    /// Leave after the run has ended.
    Leave,
}

pub(super) struct ChatSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl ChatSignals {
    pub(super) fn watch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    pub(super) async fn next(&mut self) -> ChatSignal {
        tokio::select! {
            _ = self.interrupt.recv() => ChatSignal::Interrupt,
            _ = self.terminate.recv() => ChatSignal::Leave,
            _ = self.hangup.recv() => ChatSignal::Leave,
        }
    }
}
