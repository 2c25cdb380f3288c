use super::Overlay;
use crate::{Expect, StoreVfs, VPath, Version, Vfs, VfsError};
use std::sync::Arc;

fn p(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

async fn layers(upper: &[&str], lower: &[&str]) -> Overlay {
    let layers = [upper, lower].map(async |paths: &[&str]| {
        let files = StoreVfs::in_memory();
        for path in paths {
            files
                .write(&p(path), "old".into(), Expect::Absent)
                .await
                .unwrap();
        }
        Arc::new(files)
    });
    let [upper, lower] = layers;
    Overlay::new(upper.await, lower.await)
}

async fn write(files: &Overlay, path: &str, expect: Expect) -> Result<Version, String> {
    let written = files.write(&p(path), "new".into(), expect).await;
    written.map_err(|error| format!("{error:?}"))
}

#[tokio::test]
async fn nothing_is_written_below_a_file_of_either_layer() {
    let files = layers(&["a", "d/x"], &["a/x", "d", "f"]).await;
    for path in ["a/x", "a/y", "f/x", "d/x/y"] {
        for expect in [Expect::Absent, Expect::Any] {
            let refused = write(&files, path, expect).await;
            assert_eq!(
                refused,
                Err(format!("{:?}", VfsError::NotDirectory(p(path))))
            );
        }
    }
    // A directory of upper replaces the file of lower.
    write(&files, "d/y", Expect::Absent).await.unwrap();
}

#[tokio::test]
async fn a_version_is_written_over_only_while_it_shows() {
    let files = layers(&["own"], &["own", "theirs"]).await;
    for path in ["own", "theirs"] {
        let exists = Err(format!("{:?}", VfsError::Exists(p(path))));
        assert_eq!(write(&files, path, Expect::Absent).await, exists);
        let changed = Err(format!("{:?}", VfsError::Changed(p(path))));
        let first = files.stat(&p(path)).await.unwrap().version;
        let second = write(&files, path, Expect::Version(first.clone()))
            .await
            .unwrap();
        assert_eq!(write(&files, path, Expect::Version(first)).await, changed);
        let third = write(&files, path, Expect::Version(second)).await.unwrap();
        files.remove(&p(path)).await.unwrap();
        assert_eq!(write(&files, path, Expect::Version(third)).await, changed);
        assert_eq!(
            write(&files, path, Expect::Version(Version("neither".into()))).await,
            changed
        );
        write(&files, path, Expect::Absent).await.unwrap();
    }
}
