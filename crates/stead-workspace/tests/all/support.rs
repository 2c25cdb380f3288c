//! Test support: paths and files.

use bytes::Bytes;
use stead_vfs::{Expect, VPath, Vfs};

pub(crate) fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

pub(crate) async fn put(files: &dyn Vfs, name: &str, content: impl Into<Bytes>) {
    files
        .write(&path(name), content.into(), Expect::Any)
        .await
        .unwrap();
}
