//! The place for tests of the benchmark's adapter. Its figures are those of a release build.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]

use std::process::Command;
use stead::agent::open_folder;
use stead::core::{Owner, Redactor};
use stead::place::open_place;
use stead::workspace::{ModelUse, OpenOptions};

#[test]
fn every_child_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_stead-bench"))
        .args(["children", "--waves", "2", "--width", "3", "--workdir"])
        .arg(dir.path())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let figures: serde_json::Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(figures["children"], 6);
    for name in ["child_ms", "session_ms"] {
        assert!(figures[name].as_f64().unwrap() > 0.0, "{figures}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let list = runtime.block_on(async {
        let options = OpenOptions {
            model_use: ModelUse::NotNeeded,
            ..OpenOptions::default()
        };
        let workspace = open_folder(dir.path(), options, &|_| None).await.unwrap();
        let place = open_place(&workspace.place_settings(dir.path()), Redactor::default()).await;
        let sessions = place.unwrap().sessions(&Owner::default());
        sessions.list_all().await.unwrap()
    });
    let children = list.iter().filter(|summary| summary.parent.is_some());
    assert_eq!((children.count(), list.len()), (6, 13));
}
