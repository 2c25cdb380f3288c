//! Group commit: many writers that wait for the disk share one sync.
//!
//! Effects: none.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Syncs one file or directory for many waiters.
///
/// A waiter takes a ticket, then waits for the lock. The holder of the lock syncs for every ticket
/// that was taken before the sync began; the other waiters then find their ticket served.
#[derive(Debug, Default)]
pub(crate) struct GroupSync {
    tickets: AtomicU64,
    served: tokio::sync::Mutex<u64>,
}

impl GroupSync {
    /// Returns once a sync that began after this call has succeeded.
    pub(crate) async fn sync(
        self: &Arc<Self>,
        sync: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> io::Result<()> {
        let ticket = self.tickets.fetch_add(1, Ordering::SeqCst) + 1;
        let mut served = self.served.lock().await;
        if *served >= ticket {
            return Ok(());
        }
        let covered = self.tickets.load(Ordering::SeqCst);
        tokio::task::spawn_blocking(sync)
            .await
            .map_err(io::Error::other)??;
        *served = covered;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_hundred_waiters_share_a_few_syncs() {
        let group = Arc::new(GroupSync::default());
        let syncs = Arc::new(AtomicU64::new(0));
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..100 {
            let group = group.clone();
            let syncs = syncs.clone();
            tasks.spawn(async move {
                let slow = move || {
                    syncs.fetch_add(1, Ordering::SeqCst);
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    Ok(())
                };
                group.sync(slow).await
            });
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap().unwrap();
        }
        assert!(
            syncs.load(Ordering::SeqCst) < 20,
            "{} syncs",
            syncs.load(Ordering::SeqCst)
        );
    }
}
