//! Ctrl-C and termination: the first signal asks the run to stop, the second exits at once.
//!
//! Effects: processes.

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Turns a write beyond the limit for the size of files (`ulimit -f`) into an error with a message,
/// instead of the death of the process. Programs that this one starts are not affected.
pub(crate) fn survive_file_size_limit() {
    let signal_number = rustix::process::Signal::XFSZ.as_raw();
    // Once there is a handler, it stays. Without one nothing is lost but the message.
    let _ = signal(SignalKind::from_raw(signal_number));
}

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
