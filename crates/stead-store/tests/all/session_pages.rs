//! The place for tests of listing sessions page by page, and of reading parts of journals.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use stead_core::{
    AgentId, ChainSum, Entry, JournalLine, NewSession, Redactor, RunEnd, RunId, RunOutcome,
    SessionId, SessionStart, UserInput, encode_line,
};
use stead_store::{
    FileSessions, JournalEnd, LockWait, MemoryStore, OsDisk, PageCursor, PageRequest, RedisStore,
    Sessions, Space, SqlStore, StoreError, StoreSessions,
};
use stead_testkit::servers::{ServerKind, shared};
use tempfile::TempDir;

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn files(dir: &Path) -> FileSessions {
    FileSessions::new(dir, AgentId::main(), Arc::new(OsDisk), Redactor::default())
}

/// Returns empty sessions in files and in every store.
async fn every_kind() -> (Vec<Arc<dyn Sessions>>, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let mut kinds: Vec<Arc<dyn Sessions>> = vec![Arc::new(files(dir.path()))];
    let space = Space::new(["pages", RunId::fresh().as_str()]);
    let stores: [Arc<dyn stead_store::Store>; 5] = [
        Arc::new(MemoryStore::new()),
        Arc::new(SqlStore::connect("sqlite::memory:").await.unwrap()),
        Arc::new(
            SqlStore::connect(&shared(ServerKind::Postgres))
                .await
                .unwrap(),
        ),
        Arc::new(SqlStore::connect(&shared(ServerKind::Mysql)).await.unwrap()),
        Arc::new(
            RedisStore::connect(&shared(ServerKind::Redis))
                .await
                .unwrap(),
        ),
    ];
    for store in stores {
        let sessions =
            StoreSessions::new(store, space.clone(), AgentId::main(), Redactor::default());
        kinds.push(Arc::new(sessions));
    }
    (kinds, dir)
}

fn input(text: &str) -> Vec<Entry> {
    let run = RunId::fresh();
    let end = RunEnd {
        run: run.clone(),
        outcome: RunOutcome::Completed,
        reason: None,
    };
    vec![Entry::User(UserInput::text(run, text)), Entry::End(end)]
}

/// Creates a session, or adds a run to it.
async fn write(sessions: &dyn Sessions, id: &SessionId, text: &str) -> JournalEnd {
    let mut opened = match sessions.open(id, None, LockWait::No).await {
        Err(StoreError::NotFound(_)) => sessions.create(id, NewSession::default()).await.unwrap(),
        opened => opened.unwrap(),
    };
    opened.writer.append(input(text)).await.unwrap();
    let at = opened.writer.position();
    opened.writer.close().await;
    JournalEnd {
        seq: at.seq,
        bytes: at.bytes,
    }
}

/// Returns all ids, read page by page.
async fn pages(sessions: &dyn Sessions, limit: usize) -> Vec<SessionId> {
    let mut ids = Vec::new();
    let mut after = None;
    loop {
        let page = sessions.list(PageRequest { limit, after }).await.unwrap();
        assert!(page.sessions.len() <= limit);
        ids.extend(page.sessions.into_iter().map(|summary| summary.id));
        match page.next {
            Some(next) => after = Some(next.to_string().parse().unwrap()),
            None => return ids,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_show_every_session_once_newest_first() {
    let (kinds, _dir) = every_kind().await;
    for sessions in kinds {
        let place = sessions.locate(&id("s"));
        assert_eq!(pages(&*sessions, 3).await, [], "{place}");
        for n in 0..7 {
            write(&*sessions, &id(&format!("s{n}")), "hello").await;
            // The kernel's clock of files has steps of 4 to 10 ms.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        write(&*sessions, &id("s2"), "again").await;
        let wanted = ["s2", "s6", "s5", "s4", "s3", "s1", "s0"].map(id);
        for limit in [1, 2, 3, 7, 100] {
            assert_eq!(pages(&*sessions, limit).await, wanted, "{place}: {limit}");
        }
        let all = sessions.list_all().await.unwrap();
        let all: Vec<&SessionId> = all.iter().map(|summary| &summary.id).collect();
        assert_eq!(all, wanted.iter().collect::<Vec<_>>(), "{place}");
        // Sessions that are added or changed meanwhile do not disturb the pages that follow.
        let first = sessions.list(PageRequest::first(3)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        write(&*sessions, &id("new"), "new").await;
        write(&*sessions, &id("s4"), "changed after it was shown").await;
        let rest = PageRequest {
            limit: 100,
            after: first.next,
        };
        let rest = sessions.list(rest).await.unwrap();
        let rest: Vec<SessionId> = rest.sessions.into_iter().map(|s| s.id).collect();
        assert_eq!(rest, ["s3", "s1", "s0"].map(id), "{place}: {rest:?}");
        let summary = &sessions.list(PageRequest::first(1)).await.unwrap().sessions[0];
        assert_eq!((summary.id.as_str(), summary.runs), ("s4", 2), "{place}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parts_of_a_journal_are_the_lines_of_the_whole() {
    let (kinds, _dir) = every_kind().await;
    for sessions in kinds {
        let place = sessions.locate(&id("s"));
        let missing = sessions.read_from(&id("s"), 1, 1000).await;
        assert!(matches!(missing, Err(StoreError::NotFound(_))), "{place}");
        let missing = sessions.read_from(&id("s"), 5, 1000).await;
        assert!(matches!(missing, Err(StoreError::NotFound(_))), "{place}");
        assert_eq!(sessions.tail(&id("s")).await.unwrap(), None, "{place}");
        for text in ["one", &"long".repeat(50_000), "three", "four"] {
            let end = write(&*sessions, &id("s"), text).await;
            assert_eq!(sessions.tail(&id("s")).await.unwrap(), Some(end), "{place}");
        }
        let whole = sessions.read(&id("s")).await.unwrap();
        let last = whole.len() as u64;
        for from in (0..=last + 2).chain((0..=last + 2).rev()) {
            let start = usize::try_from(from.max(1) - 1).unwrap();
            let wanted = whole.get(start..).unwrap_or_default();
            let part = sessions.read_from(&id("s"), from, usize::MAX / 2).await;
            assert_eq!(part.unwrap(), wanted, "{place}: {from}");
            let few = sessions.read_from(&id("s"), from, 1).await.unwrap();
            assert_eq!(few, wanted[..wanted.len().min(1)], "{place}: {from}");
        }
        // Following a journal that grows.
        let mut followed: Vec<JournalLine> = Vec::new();
        for n in 0..4 {
            loop {
                let from = followed.len() as u64 + 1;
                let part = sessions.read_from(&id("s"), from, 300).await.unwrap();
                if part.is_empty() {
                    break;
                }
                followed.extend(part);
            }
            assert_eq!(followed, sessions.read(&id("s")).await.unwrap(), "{place}");
            write(&*sessions, &id("s"), &format!("more {n}")).await;
        }
        // A session of the same name is not taken for the one that was read.
        sessions.remove(&id("s")).await.unwrap();
        for _ in 0..10 {
            write(&*sessions, &id("s"), "another").await;
        }
        let from = followed.len() as u64 + 1;
        let part = sessions.read_from(&id("s"), from, 1_000_000).await.unwrap();
        assert!(part[0].seq == from && part.len() > 1, "{place}");
    }
}

#[tokio::test]
async fn a_torn_last_line_is_left_out_and_damage_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = files(dir.path());
    let end = write(&sessions, &id("s"), "hello").await;
    let path = sessions.path(&id("s"));
    let whole = std::fs::read(&path).unwrap();
    for torn in ["{", "{\"seq\":4,\"at\"", "\0\0"] {
        std::fs::write(&path, [&whole[..], torn.as_bytes()].concat()).unwrap();
        assert_eq!(sessions.tail(&id("s")).await.unwrap(), Some(end), "{torn}");
        let part = sessions.read_from(&id("s"), 2, 10_000).await.unwrap();
        assert_eq!(part.last().unwrap().seq, 3, "{torn}");
        assert_eq!(sessions.read_from(&id("s"), 4, 1).await.unwrap(), []);
    }
    std::fs::write(&path, "{\"seq\":1,").unwrap();
    assert_eq!(sessions.tail(&id("s")).await.unwrap(), None);
    let changed = String::from_utf8(whole).unwrap().replace("hello", "hullo");
    std::fs::write(&path, changed).unwrap();
    let damaged = files(dir.path()).read_from(&id("s"), 2, 1000).await;
    assert!(
        matches!(damaged, Err(StoreError::Damaged { line: 2, .. })),
        "{damaged:?}"
    );
}

/// Writes journals of one line, the highest number the newest.
fn write_journals(dir: &Path, count: u64) {
    let folder = dir.join("agents/main/sessions");
    std::fs::create_dir_all(&folder).unwrap();
    for n in 0..count {
        let session = id(&format!("s{n:05}"));
        let start = SessionStart::new(session.clone(), AgentId::main(), NewSession::default());
        let at = jiff::Timestamp::UNIX_EPOCH;
        let (line, _) = encode_line(1, at, &Entry::Session(start), ChainSum::START);
        let path = folder.join(format!("{session}.log.jsonl"));
        std::fs::write(&path, line).unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_000_000 + n))
            .unwrap();
    }
}

#[tokio::test]
async fn a_page_of_ten_thousand_sessions_reads_only_what_it_shows() {
    const COUNT: u64 = 10_000;
    let dir = tempfile::tempdir().unwrap();
    write_journals(dir.path(), COUNT);
    assert_eq!(
        files(dir.path()).list_all().await.unwrap().len() as u64,
        COUNT
    );
    // Journals that cannot be read any more, with the size and time that the index knows.
    for n in 0..COUNT {
        let path = files(dir.path()).path(&id(&format!("s{n:05}")));
        let meta = path.metadata().unwrap();
        let file = File::options().write(true).open(&path).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"x", 0).unwrap();
        file.set_modified(meta.modified().unwrap()).unwrap();
    }
    let sessions = files(dir.path());
    let index = dir.path().join("agents/main/sessions/sessions.jsonl");
    let before = std::fs::read(&index).unwrap();
    let started = Instant::now();
    let first = sessions.list(PageRequest::first(50)).await.unwrap();
    println!("the first page took {:?}", started.elapsed());
    let ids: Vec<String> = first.sessions.iter().map(|s| s.id.to_string()).collect();
    let wanted: Vec<String> = (0..50).map(|n| format!("s{:05}", COUNT - 1 - n)).collect();
    assert_eq!(ids, wanted);
    assert!(first.sessions.iter().all(|s| s.damage.is_none()));
    assert!(
        before == std::fs::read(&index).unwrap(),
        "nothing was derived"
    );
    let ids = pages(&sessions, 1500).await;
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len() as u64, COUNT);
    assert!(ids.is_sorted_by(|a, b| a > b));
    // One that changed is read again, and only that one.
    let changed = id("s00007");
    std::fs::remove_file(sessions.path(&changed)).unwrap();
    write(&sessions, &changed, "changed").await;
    let page = sessions.list(PageRequest::first(1)).await.unwrap();
    assert_eq!((&page.sessions[0].id, page.sessions[0].runs), (&changed, 1));
    let grown = std::fs::metadata(&index).unwrap().len() - before.len() as u64;
    assert!(grown < 1000, "{grown} bytes for one change");
    let last: PageCursor = page.next.unwrap();
    let rest = PageRequest {
        limit: 1,
        after: Some(last),
    };
    let rest = sessions.list(rest).await.unwrap();
    assert_eq!(rest.sessions[0].id, id("s09999"));
}
