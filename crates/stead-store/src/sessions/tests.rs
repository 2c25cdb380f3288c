//! The place for tests of journals on disk: durability, torn lines, damage, locking and faults.

use crate::*;
use proptest::prelude::*;
use rustix::fs::{FlockOperation, flock};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::*;

fn journals(dir: &Path) -> FileSessions {
    FileSessions::new(
        dir,
        AgentId::new("main").unwrap(),
        Arc::new(OsDisk),
        Redactor::new(["sk-very-secret".into()]),
    )
}

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn run() -> RunId {
    RunId::new("r1").unwrap()
}

/// A whole run: input, a step with one call, an answer, the end.
fn story(path: &str) -> Vec<Entry> {
    let call = ToolCall {
        id: "c1".into(),
        name: "write_file".into(),
        args: serde_json::json!({"file_path": path, "content": "ä\n"}),
        invalid: None,
        signature: None,
    };
    let reply = |content: Vec<Block>, stop| {
        let usage = Usage {
            input_tokens: 10,
            output_tokens: 5,
            ..Usage::default()
        };
        let cost = Some(Usd::from_nanos(7));
        Entry::Model(ModelReply {
            run: run(),
            model: "fake:m".into(),
            content,
            usage,
            cost,
            stop,
        })
    };
    vec![
        Entry::User(UserInput::text(run(), "write a file")),
        reply(vec![Block::ToolCall(call)], StopReason::ToolUse),
        Entry::Call(CallIntent {
            run: run(),
            id: "c1".into(),
            tool: "write_file".into(),
            args_hash: "00".into(),
            changes: true,
            repeatable: false,
            nested: None,
        }),
        Entry::Result(CallResult {
            run: run(),
            id: "c1".into(),
            status: ResultStatus::Ok,
            exit_code: None,
            content: vec![Block::text("done")],
            seen: [(path.to_owned(), "v1".to_owned())].into(),
            activates: None,
            untrusted: false,
            taint: Vec::new(),
            change: None,
            tasks: Vec::new(),
            ms: 1,
            nested: None,
        }),
        reply(vec![Block::text("finished")], StopReason::EndTurn),
        Entry::End(RunEnd {
            run: run(),
            outcome: RunOutcome::Completed,
            reason: None,
        }),
    ]
}

async fn written(journals: &FileSessions, name: &str) -> (SessionState, Position) {
    let mut opened = journals
        .create(&id(name), NewSession::default())
        .await
        .unwrap();
    let mut state = opened.state.unwrap();
    for entry in story("a.txt") {
        for line in opened.writer.append(vec![entry]).await.unwrap() {
            state.apply(line.seq, &line.entry).unwrap();
        }
    }
    let position = opened.writer.position();
    journals.update_derived(&state, position).await;
    (state, position)
}

#[tokio::test]
async fn a_session_read_back_is_the_session_that_was_lived() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    let (state, position) = written(&journals, "s1").await;
    let opened = journals.open(&id("s1"), None, LockWait::No).await.unwrap();
    assert_eq!(opened.state, Some(state));
    assert_eq!((opened.writer.position(), opened.torn), (position, None));
}

#[tokio::test]
async fn a_journal_cut_anywhere_loses_only_its_torn_line() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    written(&journals, "s1").await;
    let path = journals.path(&id("s1"));
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let sound = whole[..cut]
            .iter()
            .rposition(|&b| b == b'\n')
            .map_or(0, |p| p + 1);
        if sound == 0 {
            // The index knows only sessions that were acknowledged.
            let _ = std::fs::remove_file(path.with_file_name("sessions.jsonl"));
        }
        let opened = journals.open(&id("s1"), None, LockWait::No).await;
        if sound == 0 {
            // Nothing was acknowledged, so the session can be created again.
            assert!(
                matches!(opened, Err(StoreError::NotFound(_))),
                "cut at {cut}"
            );
            assert_eq!(journals.list_all().await.unwrap(), [], "cut at {cut}");
            drop(
                journals
                    .create(&id("s1"), NewSession::default())
                    .await
                    .unwrap(),
            );
            continue;
        }
        let opened = opened.unwrap();
        let torn = opened.torn.as_ref().map_or(0, |torn| torn.bytes);
        assert_eq!(torn as usize, cut - sound, "cut at {cut}");
        drop(opened);
        assert_eq!(
            std::fs::read(&path).unwrap(),
            &whole[..sound],
            "cut at {cut}"
        );
    }
    // A power failure can also leave a blank end.
    let mut blank = whole.clone();
    blank.extend([0; 512]);
    std::fs::write(&path, &blank).unwrap();
    let opened = journals.open(&id("s1"), None, LockWait::No).await.unwrap();
    assert_eq!(
        opened.torn,
        Some(TornTail {
            line: 8,
            bytes: 512
        })
    );
}

#[tokio::test]
async fn an_entry_kind_of_a_newer_version_is_refused_and_kept_even_on_the_last_line() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    drop(
        journals
            .create(&id("s1"), NewSession::default())
            .await
            .unwrap(),
    );
    let path = journals.path(&id("s1"));
    std::fs::copy(
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newer-kind.log.jsonl"),
        &path,
    )
    .unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = journals
        .open(&id("s1"), None, LockWait::No)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("\"dream\"") && error.contains("newer"),
        "{error}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), before);
}

#[tokio::test]
async fn damage_in_the_middle_names_file_and_line_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    written(&journals, "s1").await;
    let path = journals.path(&id("s1"));
    // File times advance with the kernel's clock; the damage must come later than that.
    std::thread::sleep(Duration::from_millis(20));
    let whole = std::fs::read(&path).unwrap();
    let third_line = whole
        .split(|&b| b == b'\n')
        .take(2)
        .map(|l| l.len() + 1)
        .sum::<usize>();
    for damage in ["flip", "removed line", "newline"] {
        let mut bytes = whole.clone();
        match damage {
            "flip" => bytes[third_line + 40] ^= 1,
            "newline" => bytes[third_line + 40] = b'\n',
            _ => {
                let end = bytes[third_line..]
                    .iter()
                    .position(|&b| b == b'\n')
                    .unwrap();
                bytes.drain(third_line..=third_line + end);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        let error = journals
            .open(&id("s1"), None, LockWait::No)
            .await
            .unwrap_err();
        assert!(
            matches!(&error, StoreError::Damaged { line: 3, .. }),
            "{damage}: {error}"
        );
        assert!(error.to_string().contains("s1.log.jsonl:3"), "{error}");
        assert!(journals.read(&id("s1")).await.is_err());
        assert_eq!(
            std::fs::read(&path).unwrap(),
            bytes,
            "{damage}: the file was touched"
        );
        let list = journals.list_all().await.unwrap();
        assert!(list[0].damage.is_some(), "{damage}: the listing hides it");
    }
}

// A session has one writer; a second process is told who holds it, and a lock dies with its holder.
#[tokio::test]
async fn a_second_writer_is_told_who_holds_the_session_and_can_wait() {
    let dir = tempfile::tempdir().unwrap();
    let journals = Arc::new(journals(dir.path()));
    let opened = journals
        .create(&id("s1"), NewSession::default())
        .await
        .unwrap();
    let error = journals
        .open(&id("s1"), None, LockWait::No)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&format!("process {}", std::process::id())),
        "{error}"
    );

    let started = Instant::now();
    let session = id("s1");
    let waiting = journals.open(&session, None, LockWait::AtMost(Duration::from_secs(5)));
    let release = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        drop(opened);
    };
    let (taken, ()) = tokio::join!(waiting, release);
    assert!(taken.is_ok() && started.elapsed() >= Duration::from_millis(100));
}

/// Simulates a process that was forked while the session was held and has not called exec yet.
#[tokio::test]
async fn a_copy_of_the_open_journal_does_not_keep_the_session() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s1.log.jsonl");
    let file = Arc::new(std::fs::File::create(&path).unwrap());
    let copy = file.try_clone().unwrap();
    let lock = super::lock::Lock::take(file, &path, &id("s1"), LockWait::No)
        .await
        .unwrap();
    let other = std::fs::File::open(&path).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
    drop(lock);
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok());
    drop(copy);
}

#[tokio::test]
async fn snapshot_and_index_are_derived_and_come_back_when_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    let (state, position) = written(&journals, "s1").await;
    let index = dir.path().join("agents/main/sessions/sessions.jsonl");
    let snapshot = dir.path().join("agents/main/context/s1/agent_state.json");
    let snapshot_text: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&snapshot).unwrap()).unwrap();
    assert_eq!(snapshot_text["position"]["seq"], position.seq);
    let list = journals.list_all().await.unwrap();
    assert_eq!(
        (list.len(), &list[0].title, list[0].runs),
        (1, &state.title, 1)
    );
    for broken in ["", "not json", r#"{"version":1,"sessions":{}}"#] {
        std::fs::write(&index, broken).unwrap();
        assert_eq!(
            journals.list_all().await.unwrap()[0].entries,
            list[0].entries
        );
        assert!(
            std::fs::read_to_string(&index)
                .unwrap()
                .contains("write a file")
        );
    }
    std::fs::remove_file(&index).unwrap();
    assert_eq!(journals.list_all().await.unwrap()[0].usage, list[0].usage);
    journals.remove(&id("s1")).await.unwrap();
    assert_eq!(journals.list_all().await.unwrap(), vec![]);
    assert!(!snapshot.exists());
    assert!(matches!(
        journals.open(&id("s1"), None, LockWait::No).await,
        Err(StoreError::NotFound(_))
    ));
}

#[tokio::test]
async fn a_known_secret_reaches_neither_the_file_nor_the_state() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    let mut opened = journals
        .create(&id("s1"), NewSession::default())
        .await
        .unwrap();
    let entry = Entry::User(UserInput::text(run(), "my key is sk-very-secret, keep it"));
    let lines = opened.writer.append(vec![entry]).await.unwrap();
    assert_eq!(
        lines[0].entry,
        Entry::User(UserInput::text(run(), "my key is [redacted], keep it"))
    );
    drop(opened);
    assert!(
        !std::fs::read_to_string(journals.path(&id("s1")))
            .unwrap()
            .contains("sk-very")
    );
    assert_eq!(journals.read(&id("s1")).await.unwrap()[1], lines[0]);
}

#[tokio::test]
async fn an_unchanged_journal_is_not_read_again_and_a_changed_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    let (_, position) = written(&journals, "s1").await;
    let opened = journals
        .open(&id("s1"), Some(position), LockWait::No)
        .await
        .unwrap();
    assert_eq!(opened.state, None);
    drop(opened);
    let mut other = journals.open(&id("s1"), None, LockWait::No).await.unwrap();
    other
        .writer
        .append(vec![Entry::User(UserInput::text(run(), "more"))])
        .await
        .unwrap();
    drop(other);
    let opened = journals
        .open(&id("s1"), Some(position), LockWait::No)
        .await
        .unwrap();
    assert_eq!(opened.state.unwrap().turns.len(), 5);
}

#[tokio::test]
async fn a_read_only_folder_gives_a_typed_error() {
    // Root ignores mode bits, so a file where a directory should be blocks the folder.
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agents"), "in the way").unwrap();
    let error = journals(dir.path())
        .create(&id("s1"), NewSession::default())
        .await
        .unwrap_err();
    assert!(matches!(error, StoreError::Io { .. }), "{error}");
    assert_eq!(
        journals(dir.path())
            .list_all()
            .await
            .map(|l| l.len())
            .unwrap_or(0),
        0
    );
}

#[test]
fn a_lock_is_free_once_its_file_is_closed() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let first = file.reopen().unwrap();
    flock(&first, FlockOperation::NonBlockingLockExclusive).unwrap();
    let second = file.reopen().unwrap();
    assert!(flock(&second, FlockOperation::NonBlockingLockExclusive).is_err());
    drop(first);
    assert!(flock(&second, FlockOperation::NonBlockingLockExclusive).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 4))]
    // Arbitrary bytes after an intact journal never cause a panic, and the intact part is always
    // kept.
    #[test]
    fn garbage_after_a_sound_journal_is_cut_or_refused(garbage in proptest::collection::vec(any::<u8>(), 1..200)) {
        let dir = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let journals = journals(dir.path());
            let (state, _) = written(&journals, "s1").await;
            let path = journals.path(&id("s1"));
            let mut bytes = std::fs::read(&path).unwrap();
            let sound = bytes.len();
            bytes.extend(&garbage);
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(opened) = journals.open(&id("s1"), None, LockWait::No).await {
                prop_assert_eq!(opened.state.as_ref(), Some(&state));
                drop(opened);
                prop_assert_eq!(std::fs::read(&path).unwrap().len(), sound);
            }
            Ok(())
        })?;
    }
}

/// Only what a crash can leave is removed. Changes by an editor, other line ends or a foreign file
/// are damage.
#[tokio::test]
async fn what_no_crash_leaves_is_damage_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    written(&journals, "s1").await;
    let path = journals.path(&id("s1"));
    let whole = std::fs::read_to_string(&path).unwrap();
    let last = whole.lines().last().unwrap();
    let cases = [
        whole.replace('\n', "\r\n"),
        whole.replace(last, &last.replace("completed", "cancelled")),
        format!("{whole}a note of mine"),
        "notes, and no journal at all".to_owned(),
        whole.replace("\"session\":\"s1\"", "\"session\":\"s2\""),
    ];
    for text in cases {
        std::fs::write(&path, &text).unwrap();
        let error = journals
            .open(&id("s1"), None, LockWait::No)
            .await
            .unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[tokio::test]
async fn a_journal_under_another_name_or_of_another_kind_is_refused_and_hides_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    written(&journals, "s1").await;
    std::fs::copy(journals.path(&id("s1")), journals.path(&id("s2"))).unwrap();
    let error = journals
        .open(&id("s2"), None, LockWait::No)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("belongs to session s1"), "{error}");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        journals.path(&id("s3")),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    std::os::unix::fs::symlink(journals.path(&id("s1")), journals.path(&id("s4"))).unwrap();
    for odd in ["s3", "s4"] {
        assert!(journals.open(&id(odd), None, LockWait::No).await.is_err());
        assert!(journals.read(&id(odd)).await.is_err());
    }
    let list = journals.list_all().await.unwrap();
    let sound: Vec<&str> = list
        .iter()
        .filter(|s| s.damage.is_none())
        .map(|s| s.id.as_str())
        .collect();
    assert_eq!((list.len(), sound), (4, vec!["s1"]));
}

/// A disk on which another process starts the session as soon as its file exists.
#[derive(Debug)]
struct Racing;

impl Disk for Racing {
    fn create(
        &self,
        dir: std::os::fd::BorrowedFd<'_>,
        name: &Path,
        mode: u32,
    ) -> std::io::Result<std::fs::File> {
        let file = OsDisk.create(dir, name, mode)?;
        if name.to_string_lossy().ends_with(".log.jsonl") {
            std::io::Write::write_all(&mut &file, b"the other's first line\n")?;
        }
        Ok(file)
    }
}

#[tokio::test]
async fn a_session_that_another_began_first_is_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let journals = FileSessions::new(
        dir.path(),
        AgentId::new("main").unwrap(),
        Arc::new(Racing),
        Redactor::default(),
    );
    assert!(matches!(
        journals.create(&id("s1"), NewSession::default()).await,
        Err(StoreError::Exists(_))
    ));
    assert_eq!(
        std::fs::read_to_string(journals.path(&id("s1"))).unwrap(),
        "the other's first line\n"
    );
}

#[tokio::test]
async fn a_journal_that_lost_its_content_is_reported_and_not_begun_again() {
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    written(&journals, "s1").await;
    journals.flush().await;
    std::fs::write(journals.path(&id("s1")), "").unwrap();
    for _ in 0..2 {
        let opened = journals.open(&id("s1"), None, LockWait::No).await;
        assert!(
            matches!(&opened, Err(StoreError::Damaged { cause, .. })
                if cause.to_string().contains("the journal is empty, but it had")),
            "{opened:?}"
        );
        let listed = journals.list_all().await.unwrap();
        let damage = listed[0].damage.as_ref().unwrap();
        assert!(damage.contains("the journal is empty"), "{damage}");
    }
    journals.remove(&id("s1")).await.unwrap();
    assert_eq!(journals.list_all().await.unwrap(), []);
}

#[tokio::test]
async fn what_sessions_keep_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    fn check(dir: &std::path::Path) -> usize {
        let entries = std::fs::read_dir(dir).unwrap().flatten();
        let entries = entries.map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode & 0o077, 0, "{}: {mode:o}", entry.path().display());
            match entry.file_type().unwrap().is_dir() {
                true => check(&entry.path()),
                false => 1,
            }
        });
        entries.sum()
    }
    let dir = tempfile::tempdir().unwrap();
    let journals = journals(dir.path());
    written(&journals, "s1").await;
    journals.flush().await;
    // The journal, the index and the snapshot.
    assert!(check(dir.path()) >= 3);
}
