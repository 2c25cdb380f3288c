//! Conformance tests of any `Vfs` under concurrent operations: no write is lost, no content is torn,
//! and no file is left without its directory.
//!
//! Effects: test support.

use super::op::p;
use std::collections::BTreeSet;
use std::sync::Arc;
use stead_vfs::{Expect, FileKind, ReadRange, Vfs, VfsError};
use tokio::task::JoinSet;

/// The number of attempts of a compare-and-set loop before it counts as stuck.
const TRIES: usize = 10_000;

/// Runs all tests of this module on an empty file system, which is empty again afterwards.
pub async fn races(vfs: Arc<dyn Vfs>) {
    all(&[vfs], 40).await;
}

/// Runs the tests between several handles to one file system, as several processes have them: each racer
/// uses the next.
///
/// # Panics
///
/// Without a handle.
pub async fn races_between(handles: &[Arc<dyn Vfs>]) {
    all(handles, 8).await;
}

async fn all(handles: &[Arc<dyn Vfs>], rounds: usize) {
    let handles = Handles(handles);
    one_creator_wins(&handles, 16).await;
    one_editor_of_a_version_wins(&handles, 8).await;
    no_edit_is_lost(&handles, 8, 10).await;
    every_appended_line_is_there(&handles, 8, 12).await;
    creators_in_one_directory_do_not_disturb_each_other(&handles, 24).await;
    no_content_is_torn(&handles, 12).await;
    nothing_is_left_without_its_directory(&handles, rounds).await;
    for handle in handles.0 {
        assert_eq!(super::tree(&**handle).await, Vec::<String>::new());
    }
}

/// Handles to one file system.
struct Handles<'a>(&'a [Arc<dyn Vfs>]);

impl Handles<'_> {
    /// Returns the handle of a racer.
    fn of(&self, racer: usize) -> Arc<dyn Vfs> {
        Arc::clone(&self.0[racer % self.0.len()])
    }

    /// Returns a handle for checks.
    fn any(&self) -> &dyn Vfs {
        &*self.0[self.0.len() - 1]
    }
}

async fn one_creator_wins(handles: &Handles<'_>, creators: usize) {
    for round in 0..crate::rounds(5) {
        let path = p(&format!("race{round}/new/file"));
        let mut tasks = JoinSet::new();
        for creator in 0..creators {
            let vfs = handles.of(creator);
            let path = path.clone();
            tasks.spawn(async move {
                (
                    creator,
                    vfs.write(&path, format!("{creator}").into(), Expect::Absent)
                        .await,
                )
            });
        }
        let mut won = Vec::new();
        for (creator, result) in tasks.join_all().await {
            match result {
                Ok(version) => won.push((creator, version)),
                Err(VfsError::Exists(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        let [(winner, version)] = <[_; 1]>::try_from(won).unwrap();
        let vfs = handles.any();
        let (content, now) = vfs.read(&path, ReadRange::ALL).await.unwrap();
        assert_eq!((content, now), (format!("{winner}").into(), version));
        vfs.remove(&p(&format!("race{round}"))).await.unwrap();
    }
}

/// All editors have read the same version: one can write, and the others get an error.
async fn one_editor_of_a_version_wins(handles: &Handles<'_>, editors: usize) {
    let vfs = handles.any();
    let path = p("edited");
    let mut version = vfs
        .write(&path, "nobody".into(), Expect::Absent)
        .await
        .unwrap();
    for round in 0..crate::rounds(3) {
        let mut tasks = JoinSet::new();
        for editor in 0..editors {
            let vfs = handles.of(editor);
            let path = path.clone();
            let expect = Expect::Version(version.clone());
            tasks.spawn(async move {
                let content = format!("{round}.{editor}");
                vfs.write(&path, content.clone().into(), expect)
                    .await
                    .map(|version| (content, version))
            });
        }
        let mut won = Vec::new();
        for result in tasks.join_all().await {
            match result {
                Ok(written) => won.push(written),
                Err(VfsError::Changed(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
        let [(content, now)] = <[_; 1]>::try_from(won).unwrap();
        assert_eq!(
            vfs.read(&path, ReadRange::ALL).await.unwrap(),
            (content.into(), now.clone())
        );
        version = now;
    }
    vfs.remove(&path).await.unwrap();
}

/// Changes a file's content by compare-and-set, until it succeeds.
async fn edit(vfs: &dyn Vfs, path: &str, change: impl Fn(&str) -> String) {
    for _ in 0..TRIES {
        let (content, version) = vfs.read(&p(path), ReadRange::ALL).await.unwrap();
        let new = change(std::str::from_utf8(&content).unwrap());
        match vfs
            .write(&p(path), new.into(), Expect::Version(version))
            .await
        {
            Ok(_) => return,
            Err(VfsError::Changed(_)) => {}
            Err(other) => panic!("{other}"),
        }
    }
    panic!("{path}: always changed by someone else");
}

async fn no_edit_is_lost(handles: &Handles<'_>, editors: usize, edits: usize) {
    let vfs = handles.any();
    // The sizes are equal, so that only the version differs.
    vfs.write(&p("counter"), "1000".into(), Expect::Absent)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for editor in 0..editors {
        let vfs = handles.of(editor);
        tasks.spawn(async move {
            for _ in 0..edits {
                edit(&*vfs, "counter", |text| {
                    (text.parse::<usize>().unwrap() + 1).to_string()
                })
                .await;
            }
        });
    }
    tasks.join_all().await;
    let (content, _) = vfs.read(&p("counter"), ReadRange::ALL).await.unwrap();
    assert_eq!(content, (1000 + editors * edits).to_string());
    vfs.remove(&p("counter")).await.unwrap();
}

async fn every_appended_line_is_there(handles: &Handles<'_>, writers: usize, lines: usize) {
    let vfs = handles.any();
    vfs.write(&p("log/lines"), "".into(), Expect::Absent)
        .await
        .unwrap();
    let mut tasks = JoinSet::new();
    for writer in 0..writers {
        let vfs = handles.of(writer);
        tasks.spawn(async move {
            for line in 0..lines {
                edit(&*vfs, "log/lines", |text| {
                    format!("{text}{writer}.{line}\n")
                })
                .await;
            }
        });
    }
    tasks.join_all().await;
    let (content, _) = vfs.read(&p("log/lines"), ReadRange::ALL).await.unwrap();
    let mut found: Vec<&str> = std::str::from_utf8(&content).unwrap().lines().collect();
    found.sort_unstable();
    let mut all: Vec<String> = (0..writers)
        .flat_map(|w| (0..lines).map(move |l| format!("{w}.{l}")))
        .collect();
    all.sort_unstable();
    assert_eq!(found, all);
    vfs.remove(&p("log")).await.unwrap();
}

async fn creators_in_one_directory_do_not_disturb_each_other(
    handles: &Handles<'_>,
    creators: usize,
) {
    let vfs = handles.any();
    let mut tasks = JoinSet::new();
    for creator in 0..creators {
        let vfs = handles.of(creator);
        tasks.spawn(async move {
            vfs.write(&p(&format!("busy/d/{creator}")), "x".into(), Expect::Absent)
                .await
        });
    }
    tasks
        .join_all()
        .await
        .into_iter()
        .for_each(|created| drop(created.unwrap()));
    assert_eq!(vfs.list(&p("busy/d")).await.unwrap().len(), creators);
    vfs.remove(&p("busy")).await.unwrap();
}

/// A reader sees one content or the other, complete, however large.
async fn no_content_is_torn(handles: &Handles<'_>, rounds: usize) {
    let sizes = [1_500_000, 10, 700_000, 0];
    let content = |round: usize| vec![b'a' + (round % 26) as u8; sizes[round % sizes.len()]];
    let vfs = handles.any();
    let reader_vfs = handles.of(0);
    vfs.write(&p("large"), content(0).into(), Expect::Absent)
        .await
        .unwrap();
    let writer = async {
        for round in 1..=rounds {
            vfs.write(&p("large"), content(round).into(), Expect::Any)
                .await
                .unwrap();
        }
    };
    let reader = async {
        for _ in 0..rounds {
            match reader_vfs.read(&p("large"), ReadRange::ALL).await {
                Ok((bytes, _)) => {
                    assert!(
                        bytes.windows(2).all(|pair| pair[0] == pair[1]),
                        "two contents in one answer"
                    );
                    assert!(
                        sizes.contains(&bytes.len()),
                        "a content of {} bytes",
                        bytes.len()
                    );
                }
                Err(VfsError::Changed(_)) => {}
                Err(other) => panic!("{other}"),
            }
        }
    };
    tokio::join!(writer, reader);
    assert_eq!(
        vfs.read(&p("large"), ReadRange::ALL).await.unwrap().0,
        content(rounds)
    );
    vfs.remove(&p("large")).await.unwrap();
}

/// Directories are created and removed during writes; the final tree is consistent.
async fn nothing_is_left_without_its_directory(handles: &Handles<'_>, rounds: usize) {
    let mut tasks = JoinSet::new();
    for writer in 0..4 {
        let vfs = handles.of(writer);
        tasks.spawn(async move {
            for round in 0..rounds {
                let path = p(&format!("air/d/{writer}/{}/f{round}", round % 3));
                allowed(vfs.write(&path, "x".into(), Expect::Any).await.map(drop));
                allowed(vfs.mkdir(&p(&format!("air/d/m{writer}.{round}"))).await);
            }
        });
    }
    for mover in 0..2 {
        let vfs = handles.of(4 + mover);
        tasks.spawn(async move {
            for round in 0..rounds {
                allowed(
                    vfs.rename(&p("air/d"), &p(&format!("air/e{mover}/{round}")))
                        .await,
                );
                allowed(vfs.rename(&p("air/d/1"), &p("air/d/2/moved")).await);
                allowed(vfs.remove(&p("air/d")).await);
            }
        });
    }
    tasks.join_all().await;

    let vfs = handles.any();
    let walked: Vec<_> = vfs.walk(&p(""), None, usize::MAX).await.unwrap().entries;
    let directory = |kind: FileKind| kind == FileKind::Directory;
    let directories: BTreeSet<_> = walked
        .iter()
        .filter(|(_, e)| directory(e.kind))
        .map(|(p, _)| p.clone())
        .collect();
    let mut listed = 0;
    for (path, entry) in &walked {
        let parent = path.parent().unwrap();
        assert!(
            parent.is_root() || directories.contains(&parent),
            "{path} is in no directory"
        );
        if directory(entry.kind) {
            listed += vfs.list(path).await.unwrap().len();
        } else {
            assert_eq!(vfs.read(path, ReadRange::ALL).await.unwrap().0, "x");
        }
    }
    assert_eq!(listed + vfs.list(&p("")).await.unwrap().len(), walked.len());
    vfs.remove(&p("air")).await.unwrap();
    assert_eq!(vfs.walk(&p(""), None, 10).await.unwrap().entries, vec![]);
}

/// Checks that a failure is one that a lost race may cause.
fn allowed(result: Result<(), VfsError>) {
    match result {
        Ok(()) | Err(VfsError::NotFound(_) | VfsError::Exists(_) | VfsError::Changed(_)) => {}
        // The error of the local disk if a directory gets new entries while it is being removed.
        Err(VfsError::Io { source, .. })
            if source.kind() == std::io::ErrorKind::DirectoryNotEmpty => {}
        Err(other) => panic!("{other:?}"),
    }
}
