//! Contents that are written piece by piece.
//!
//! Effects: test support.

use super::op::p;
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use std::sync::Arc;
use stead_vfs::{Expect, ReadRange, Vfs, VfsError};

/// Sizes of pieces around the limits at which a place may split: nothing, one byte, a chunk,
/// several commits.
const PIECES: [&[usize]; 7] = [
    &[],
    &[0],
    &[1, 2, 3],
    &[65_536],
    &[65_536, 1],
    &[524_288, 524_288],
    &[1, 3_000_000, 700_000, 999],
];

fn pieces(sizes: &[usize]) -> Vec<Bytes> {
    let piece = |(number, size): (usize, &usize)| {
        (0..*size)
            .map(|at| b'a' + ((at / 100 + number) % 26) as u8)
            .collect::<Vec<u8>>()
            .into()
    };
    sizes.iter().enumerate().map(piece).collect()
}

/// A streamed content is written completely or not at all. Leaves the place empty.
pub async fn streams(vfs: Arc<dyn Vfs>) {
    let vfs = &*vfs;
    let path = p("streams/deep/file");
    for sizes in PIECES {
        let pieces = pieces(sizes);
        let whole = pieces.concat();
        let version = vfs
            .write_stream(&path, stream::iter(pieces).boxed())
            .await
            .unwrap();
        let read = vfs.read(&path, ReadRange::ALL).await.unwrap();
        assert!(read == (whole.clone().into(), version.clone()), "{sizes:?}");
        let stat = vfs.stat(&path).await.unwrap();
        assert_eq!(
            (stat.size, stat.version),
            (whole.len() as u64, version),
            "{sizes:?}"
        );
    }
    unseen_until_the_end(vfs).await;
    dropped(vfs).await;
    for directory in ["", "streams/deep"] {
        let refused = vfs
            .write_stream(&p(directory), stream::empty().boxed())
            .await;
        assert!(
            matches!(refused, Err(VfsError::IsDirectory(_))),
            "{directory}: {refused:?}"
        );
    }
    vfs.remove(&p("streams")).await.unwrap();
    assert_eq!(super::tree(vfs).await, Vec::<String>::new());
}

/// While pieces arrive, readers see the earlier content; its permission bits stay.
async fn unseen_until_the_end(vfs: &dyn Vfs) {
    let path = p("streams/seen");
    vfs.write(&path, "old".into(), Expect::Absent)
        .await
        .unwrap();
    vfs.set_mode(&path, 0o750).await.unwrap();
    let mode = vfs.stat(&path).await.unwrap().mode;
    let source = stream::iter([1, 2]).then(|_| async {
        let (content, _) = vfs.read(&p("streams/seen"), ReadRange::ALL).await.unwrap();
        assert_eq!(content, "old");
        Bytes::from("new")
    });
    vfs.write_stream(&path, source.boxed()).await.unwrap();
    assert_eq!(vfs.read(&path, ReadRange::ALL).await.unwrap().0, "newnew");
    assert_eq!(vfs.stat(&path).await.unwrap().mode, mode);
}

/// A write whose future is dropped leaves nothing visible.
async fn dropped(vfs: &dyn Vfs) {
    let path = p("streams/dropped");
    let source = stream::iter(pieces(&[3_000_000])).chain(stream::pending());
    let writing = vfs.write_stream(&path, source.boxed());
    assert!(
        tokio::time::timeout(std::time::Duration::from_millis(200), writing)
            .await
            .is_err()
    );
    let names: Vec<String> = vfs
        .list(&p("streams"))
        .await
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["deep", "seen"]);
}
