//! Ctrl-C and termination: the first signal asks the run to stop, the second exits at once.
//!
//! Effects: in-process state, processes.

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Watches for signals until dropped.
pub(crate) struct Signals {
    pub(crate) cancel: CancellationToken,
    _watch: JoinSet<()>,
}

impl Signals {
    pub(crate) fn watch() -> std::io::Result<Self> {
        let cancel = CancellationToken::new();
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut watch = JoinSet::new();
        let token = cancel.clone();
        watch.spawn(async move {
            loop {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
                if token.is_cancelled() {
                    std::process::exit(130);
                }
                token.cancel();
            }
        });
        Ok(Self {
            cancel,
            _watch: watch,
        })
    }
}
