//! Measures the listing of many sessions.
//!
//! ```sh
//! cargo run --release -p stead-store --example list_page -- make FOLDER 10000
//! cargo run --release -p stead-store --example list_page -- page FOLDER 50
//! ```

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};
use stead_core::{
    AgentId, ChainSum, Entry, Redactor, RunEnd, RunId, RunOutcome, SessionId, SessionStart,
    UserInput, encode_line,
};
use stead_store::{FileSessions, LockWait, OsDisk, PageRequest, Sessions};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [what, folder, number] = &args[..] else {
        return Err("make FOLDER COUNT, or page FOLDER LIMIT".into());
    };
    let folder = Path::new(folder);
    match what.as_str() {
        "make" => make(folder, number.parse()?).await,
        "page" => page(folder, number.parse()?).await,
        _ => Err("make or page".into()),
    }
}

fn sessions(folder: &Path) -> FileSessions {
    FileSessions::new(
        folder,
        AgentId::main(),
        Arc::new(OsDisk),
        Redactor::default(),
    )
}

fn run(text: &str) -> [Entry; 2] {
    let run = RunId::fresh();
    let end = RunEnd {
        run: run.clone(),
        outcome: RunOutcome::Completed,
        reason: None,
    };
    [Entry::User(UserInput::text(run, text)), Entry::End(end)]
}

/// Writes journals of 21 lines, and their index.
async fn make(folder: &Path, count: u64) -> Result<(), Box<dyn std::error::Error>> {
    let dir = folder.join("agents/main/sessions");
    std::fs::create_dir_all(&dir)?;
    for n in 0..count {
        let id = SessionId::fresh();
        let start = Entry::Session(SessionStart::new(
            id.clone(),
            AgentId::main(),
            stead_core::NewSession::default(),
        ));
        let runs = (0..10).flat_map(|_| run("What have we decided about the parcels for Bern?"));
        let mut text = String::new();
        let mut sum = ChainSum::START;
        for (at, entry) in std::iter::once(start).chain(runs).enumerate() {
            let now = jiff::Timestamp::now();
            let (line, next) = encode_line(at as u64 + 1, now, &entry, sum);
            text.push_str(&line);
            sum = next;
        }
        let path = dir.join(format!("{id}.log.jsonl"));
        std::fs::write(&path, text)?;
        let file = std::fs::File::options().write(true).open(&path)?;
        file.set_modified(UNIX_EPOCH + Duration::from_secs(1_700_000_000 + n))?;
    }
    let started = Instant::now();
    let listed = sessions(folder).list_all().await?.len();
    println!("derived {listed} summaries in {:?}", started.elapsed());
    Ok(())
}

/// Measures the first page, the one after it, and what a run and a poll cost.
async fn page(folder: &Path, limit: usize) -> Result<(), Box<dyn std::error::Error>> {
    let started = Instant::now();
    let sessions = sessions(folder);
    let first = sessions.list(PageRequest::first(limit)).await?;
    println!("first page: {:?}", started.elapsed());
    let started = Instant::now();
    let after = first.next;
    sessions.list(PageRequest { limit, after }).await?;
    println!("second page: {:?}", started.elapsed());
    let id = &first.sessions[0].id;
    let mut opened = sessions.open(id, None, LockWait::No).await?;
    let mut state = opened.state.take().unwrap_or_default();
    for line in opened.writer.append(run("more").into()).await? {
        state.apply(line.seq, &line.entry)?;
    }
    let started = Instant::now();
    sessions
        .update_derived(&state, opened.writer.position())
        .await;
    println!("snapshot and index after a run: {:?}", started.elapsed());
    let started = Instant::now();
    for _ in 0..100 {
        sessions.tail(id).await?;
    }
    println!("tail: {:?}", started.elapsed() / 100);
    let end = opened.writer.position().seq;
    sessions.read_from(id, end, 1000).await?;
    let started = Instant::now();
    for _ in 0..100 {
        sessions.read_from(id, end + 1, 1000).await?;
    }
    println!("nothing new to read: {:?}", started.elapsed() / 100);
    Ok(())
}
