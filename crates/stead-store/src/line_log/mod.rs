//! Line logs, to which many processes append at once. Used for token usage.
//!
//! A line log is not a journal: it has no single writer, and its content can be derived again from
//! elsewhere. Each append is atomic.
//!
//! Effects: none.

mod files;
mod store;

pub use files::FileLineLog;
pub use store::StoreLineLog;

use crate::StoreError;
use futures_util::future::BoxFuture;
use std::fmt::Debug;

/// A function from the lines of a log to its new lines.
pub type RewriteLines = Box<dyn FnOnce(Vec<String>) -> Vec<String> + Send>;

/// A log of lines to which many processes append at once.
pub trait LineLog: Debug + Send + Sync {
    /// Appends lines (without line ends), all or none. They survive the end of the process.
    fn append(&self, lines: Vec<String>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns all lines, oldest first. An incomplete line is returned as it is.
    fn read(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>>;

    /// Replaces all lines by the result of `rewrite`. Lines that others append meanwhile are kept.
    fn rewrite(&self, rewrite: RewriteLines) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the location of the log, for people.
    fn locate(&self) -> String;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, OsDisk, Space};
    use std::path::Path;
    use std::sync::Arc;

    fn logs(dir: &Path) -> [Arc<dyn LineLog>; 2] {
        let file = FileLineLog::new(dir.join("agents/main/log.jsonl"), Arc::new(OsDisk));
        [
            Arc::new(file),
            Arc::new(StoreLineLog::new(
                Arc::new(MemoryStore::default()),
                Space::new(["usage"]),
            )),
        ]
    }

    #[tokio::test]
    async fn lines_come_back_in_order_and_a_rewrite_replaces_all() {
        let dir = tempfile::tempdir().unwrap();
        for log in logs(dir.path()) {
            assert_eq!(log.read().await.unwrap(), Vec::<String>::new());
            for line in ["a", "b", "c"] {
                log.append(vec![line.to_owned()]).await.unwrap();
            }
            assert_eq!(log.read().await.unwrap(), ["a", "b", "c"]);
            let without_b = |lines: Vec<String>| {
                let mut kept: Vec<String> = lines.into_iter().filter(|line| line != "b").collect();
                kept.push("d".to_owned());
                kept
            };
            log.rewrite(Box::new(without_b)).await.unwrap();
            log.append(vec!["e".to_owned()]).await.unwrap();
            assert_eq!(log.read().await.unwrap(), ["a", "c", "d", "e"]);
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn no_line_is_lost_to_others_or_to_a_rewrite() {
        const WRITERS: usize = 4;
        const LINES: usize = 50;
        let dir = tempfile::tempdir().unwrap();
        for log in logs(dir.path()) {
            let mut tasks = tokio::task::JoinSet::new();
            for writer in 0..WRITERS {
                let log = log.clone();
                tasks.spawn(async move {
                    for n in 0..LINES {
                        log.append(vec![format!("{writer}/{n}")]).await.unwrap();
                    }
                });
            }
            let again = log.clone();
            tasks.spawn(async move {
                for _ in 0..20 {
                    again.rewrite(Box::new(|lines| lines)).await.unwrap();
                    tokio::task::yield_now().await;
                }
            });
            while let Some(done) = tasks.join_next().await {
                done.unwrap();
            }
            let mut lines = log.read().await.unwrap();
            lines.sort();
            let mut wanted: Vec<String> = (0..WRITERS)
                .flat_map(|writer| (0..LINES).map(move |n| format!("{writer}/{n}")))
                .collect();
            wanted.sort();
            assert_eq!(lines, wanted);
        }
    }

    #[tokio::test]
    async fn a_line_that_was_cut_off_takes_no_other_with_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log.jsonl");
        std::fs::write(&path, "whole\n{\"cut").unwrap();
        let log = FileLineLog::new(path, Arc::new(OsDisk));
        log.append(vec!["next".to_owned()]).await.unwrap();
        assert_eq!(log.read().await.unwrap(), ["whole", "{\"cut", "next"]);
    }
}
