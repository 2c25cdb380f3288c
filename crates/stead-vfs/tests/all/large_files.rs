//! The place for tests of large files in every store: ranges, bytes fetched and memory used.

use super::backends::Ground;
use super::p;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stead_store::{
    Document, DocumentChange, Documents, FencingToken, ListedDocument, Space, StoreError,
};
use stead_vfs::{ContentHash, Expect, LineRange, ReadRange, StoreVfs, Vfs, VfsError};

const LINE_BYTES: usize = 50;
const LINES: usize = 1_048_576;
const SIZE: usize = LINE_BYTES * LINES;
const CHUNK_BYTES: u64 = 512 * 1024;
/// The memory that reading or writing in pieces may need beyond the pieces.
const MEMORY_BYTES: u64 = 32 * 1024 * 1024;

/// Documents that count what is fetched.
#[derive(Debug)]
struct Counted {
    inner: Arc<dyn Documents>,
    gets: AtomicU64,
    bytes: AtomicU64,
}

impl Counted {
    /// Returns the documents and bytes fetched since the last call.
    fn fetched(&self) -> (u64, u64) {
        (
            self.gets.swap(0, Ordering::Relaxed),
            self.bytes.swap(0, Ordering::Relaxed),
        )
    }
}

impl Documents for Counted {
    fn get<'a>(
        &'a self,
        space: &'a Space,
        key: &'a str,
    ) -> BoxFuture<'a, Result<Option<Document>, StoreError>> {
        Box::pin(async move {
            let found = self.inner.get(space, key).await?;
            self.gets.fetch_add(1, Ordering::Relaxed);
            self.bytes.fetch_add(
                found
                    .as_ref()
                    .map_or(0, |document| document.body.len() as u64),
                Ordering::Relaxed,
            );
            Ok(found)
        })
    }

    fn list<'a>(
        &'a self,
        space: &'a Space,
        prefix: &'a str,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<ListedDocument>, StoreError>> {
        self.inner.list(space, prefix, after, limit)
    }

    fn commit<'a>(
        &'a self,
        space: &'a Space,
        changes: Vec<DocumentChange>,
        fence: Option<&'a FencingToken>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        self.inner.commit(space, changes, fence)
    }
}

/// Returns lines of equal length, each with its number.
fn content(mark: char) -> Bytes {
    let mut text = String::with_capacity(SIZE);
    for line in 0..LINES {
        text.push_str(&format!("{mark}{line:<width$}\n", width = LINE_BYTES - 2));
    }
    assert_eq!(text.len(), SIZE);
    text.into()
}

/// Measures the peak memory of this process since the start of the measurement.
struct Memory {
    before: u64,
}

impl Memory {
    fn watch() -> Self {
        // Resets the peak to the current value.
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        Self {
            before: status("VmRSS:"),
        }
    }

    fn growth(&self) -> u64 {
        status("VmHWM:").saturating_sub(self.before)
    }
}

fn status(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

async fn count(documents: &dyn Documents, space: &Space) -> usize {
    documents
        .list(space, "", None, usize::MAX)
        .await
        .unwrap()
        .len()
}

async fn large_file(ground: Ground) {
    let (inner, space) = ground.documents().await;
    let documents = Arc::new(Counted {
        inner,
        gets: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let vfs = StoreVfs::new(Arc::clone(&documents) as Arc<dyn Documents>, space.clone());
    let path = p("d/large");

    let first = content('a');
    let second = content('b');
    let hash = ContentHash::of(&second);
    let writing = Memory::watch();
    let version = vfs
        .write(&path, first.clone(), Expect::Absent)
        .await
        .unwrap();
    let grown = writing.growth();
    assert!(grown < MEMORY_BYTES, "writing took {grown} bytes more");
    assert_eq!(vfs.stat(&path).await.unwrap().size, SIZE as u64);
    // The directory, its stamp, the node, the chunks.
    let chunks = (SIZE as u64).div_ceil(CHUNK_BYTES);
    assert_eq!(count(&*documents, &space).await as u64, 3 + chunks);

    let stale = vfs
        .write(
            &path,
            second.clone(),
            Expect::Version(stead_vfs::Version("0".into())),
        )
        .await;
    assert!(matches!(stale, Err(VfsError::Changed(_))), "{stale:?}");
    let version = vfs
        .write(&path, second.clone(), Expect::Version(version))
        .await
        .unwrap();
    assert_eq!(
        count(&*documents, &space).await as u64,
        3 + chunks,
        "the old content went with the old file"
    );
    drop((first, second));

    let reading = Memory::watch();
    parts(&vfs, &documents).await;
    last_lines(&vfs, &documents).await;
    let grown = reading.growth();
    assert!(
        grown < MEMORY_BYTES,
        "reading parts took {grown} bytes more"
    );

    documents.fetched();
    let (whole, now) = vfs.read(&path, ReadRange::ALL).await.unwrap();
    assert_eq!((ContentHash::of(&whole), now), (hash, version));
    assert_eq!(documents.fetched(), (1 + chunks, SIZE as u64));
    drop(whole);

    vfs.rename(&path, &p("e/moved")).await.unwrap();
    vfs.remove(&p("e")).await.unwrap();
    vfs.remove(&p("d")).await.unwrap();
    assert_eq!(count(&*documents, &space).await, 0, "nothing is left");
}

/// Reading any range fetches only the node and the chunks it covers.
async fn parts(vfs: &StoreVfs, documents: &Counted) {
    let expected = |offset: u64, len: u64| -> Vec<u8> {
        let byte = |at: u64| {
            let line = at / LINE_BYTES as u64;
            let column = at as usize % LINE_BYTES;
            format!("b{line:<width$}\n", width = LINE_BYTES - 2).as_bytes()[column]
        };
        (offset..(offset + len).min(SIZE as u64))
            .map(byte)
            .collect()
    };
    documents.fetched();
    let end = SIZE as u64;
    let ranges = [
        (0, 1, 1),
        (CHUNK_BYTES - 1, 2, 2),
        (7 * CHUNK_BYTES, CHUNK_BYTES, 1),
        (end / 2 + 17, 1000, 1),
        (end - 100, 1_000_000, 1),
        (end, 10, 0),
    ];
    for (offset, len, chunks) in ranges {
        let (read, _) = vfs
            .read(&p("d/large"), ReadRange { offset, len })
            .await
            .unwrap();
        assert!(read == expected(offset, len), "{offset}+{len}");
        let (gets, bytes) = documents.fetched();
        assert_eq!(gets, 1 + chunks, "{offset}+{len}");
        assert!(
            bytes <= chunks * CHUNK_BYTES,
            "{offset}+{len} fetched {bytes} bytes"
        );
    }
}

/// The lines near the end are found by counting all lines before them, with each chunk fetched
/// once.
async fn last_lines(vfs: &StoreVfs, documents: &Counted) {
    let skip = LINES as u64 - 3;
    let range = LineRange {
        skip,
        take: 10,
        max_line_bytes: 8,
        max_bytes: 1000,
    };
    let lines = vfs.read_lines(&p("d/large"), range).await.unwrap();
    let texts: Vec<_> = lines
        .lines
        .iter()
        .map(|line| String::from_utf8(line.text.clone()).unwrap())
        .collect();
    assert_eq!(
        texts,
        (skip..LINES as u64)
            .map(|line| format!("b{line}"))
            .collect::<Vec<_>>()
    );
    assert_eq!(
        (lines.total, lines.size, lines.binary),
        (Some(LINES as u64), SIZE as u64, false)
    );
    let (_, bytes) = documents.fetched();
    assert!(bytes <= SIZE as u64 + CHUNK_BYTES, "{bytes} bytes fetched");
}

macro_rules! large {
    ($($name:ident: $ground:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                large_file($ground).await;
            }
        )*
    };
}

large! {
    fifty_megabytes_in_sqlite: Ground::sqlite();
    fifty_megabytes_in_redis: Ground::redis();
    fifty_megabytes_in_postgres: Ground::postgres();
    fifty_megabytes_in_mariadb: Ground::mariadb();
}
