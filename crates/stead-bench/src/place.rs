//! Measuring operations per second in a place, for `bench/`.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (writes), the journal (writes), the network.

use crate::args::{BenchLayers, BenchOp, PlaceArgs};
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead::agent::open_folder;
use stead::core::{Entry, NewSession, Owner, Redactor, RunId, SessionId, UserInput};
use stead::place::{FilesystemMode, StorePathBase, connect_store, open_place};
use stead::store::{
    FileSessions, FileUndoLog, OsDisk, RunKey, Sessions, Space, StoreSessions, StoreUndoLog,
    UndoLog,
};
use stead::vfs::{
    ContentHash, Expect, Guarded, LocalVfs, ReadRange, Recorded, StoreVfs, VPath, Version, Vfs,
};
use stead::workspace::{ModelUse, OpenOptions, Workspace};
use tokio::task::JoinSet;

/// Measures operations per second, by name of the operation.
pub(crate) async fn measure(args: &PlaceArgs) -> anyhow::Result<Value> {
    let options = OpenOptions {
        model_use: ModelUse::NotNeeded,
        ..OpenOptions::default()
    };
    let workspace = open_folder(&args.workdir, options, &|_| None).await?;
    let target = open_target(args, &workspace).await?;
    let mut clients = Vec::new();
    for number in 0..args.clients {
        clients.push(BenchClient::new(&target, number, args)?);
    }
    let mut rates = Map::new();
    if args
        .ops
        .iter()
        .any(|op| !matches!(op, BenchOp::Write | BenchOp::Append))
    {
        (clients, _) = run_clients(clients, |client| client.fill()).await?;
    }
    let span = Duration::from_millis(args.ms);
    for &op in &args.ops {
        let begun = Instant::now();
        let done;
        (clients, done) = run_clients(clients, move |client| client.repeat(op, span)).await?;
        let per_second = done as f64 / begun.elapsed().as_secs_f64();
        rates.insert(format!("{op:?}").to_lowercase(), per_second.into());
    }
    target.sessions.flush().await;
    Ok(Value::Object(rates))
}

/// The place that is measured.
#[derive(Clone)]
struct BenchTarget {
    files: Arc<dyn Vfs>,
    sessions: Arc<dyn Sessions>,
}

/// Opens the place that the settings of the workspace name, with the selected layers.
async fn open_target(args: &PlaceArgs, workspace: &Workspace) -> anyhow::Result<BenchTarget> {
    let run = RunKey {
        session: SessionId::fresh(),
        run: RunId::fresh(),
    };
    let dir = &args.workdir;
    let owner = Owner::default();
    let recorded = |files, changes| Arc::new(Recorded::new(files, changes, run.clone()));
    match args.layers {
        BenchLayers::Bare => Ok(open_bare_target(dir, workspace).await?.0),
        BenchLayers::Recorded => {
            let (target, changes) = open_bare_target(dir, workspace).await?;
            Ok(BenchTarget {
                files: recorded(target.files, changes),
                ..target
            })
        }
        BenchLayers::Agent => {
            let place = open_place(&workspace.place_settings(dir), Redactor::default()).await?;
            let files = recorded(
                place.files(&owner, &run.session, None),
                place.changes(&owner),
            );
            let files = Arc::new(Guarded::new(files, workspace.rules.clone()));
            Ok(BenchTarget {
                files,
                sessions: place.sessions(&owner),
            })
        }
    }
}

async fn open_bare_target(
    dir: &Path,
    workspace: &Workspace,
) -> anyhow::Result<(BenchTarget, Arc<dyn UndoLog>)> {
    let settings = &workspace.config().filesystem;
    let agent = workspace.config().agent_id();
    let disk = Arc::new(OsDisk);
    let redactor = Redactor::default();
    match settings.mode {
        FilesystemMode::Local => {
            let files = Arc::new(LocalVfs::open(dir, disk.clone())?);
            let changes = Arc::new(FileUndoLog::new(dir, &agent, disk.clone()));
            let sessions = Arc::new(FileSessions::new(dir, agent, disk, redactor));
            Ok((BenchTarget { files, sessions }, changes))
        }
        FilesystemMode::Store => {
            let store = connect_store(
                StorePathBase::Workspace {
                    dir,
                    home: &workspace.definition.home(),
                },
                settings.url.as_deref().unwrap_or_default(),
            )
            .await?;
            let space = Space::new(["bench"]);
            let files = Arc::new(StoreVfs::new(store.clone(), space.clone()));
            let changes = Arc::new(StoreUndoLog::new(store.clone(), space.within("undo")));
            Ok((
                BenchTarget {
                    files,
                    sessions: Arc::new(StoreSessions::new(store, space, agent, redactor)),
                },
                changes,
            ))
        }
    }
}

/// Runs all clients in parallel. Returns them with the total number of operations.
async fn run_clients<F>(
    clients: Vec<BenchClient>,
    work: impl Fn(BenchClient) -> F,
) -> anyhow::Result<(Vec<BenchClient>, u64)>
where
    F: Future<Output = anyhow::Result<(BenchClient, u64)>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    for client in clients {
        tasks.spawn(work(client));
    }
    let mut clients = Vec::new();
    let mut sum = 0;
    while let Some(done) = tasks.join_next().await {
        let (client, count) = done??;
        clients.push(client);
        sum += count;
    }
    Ok((clients, sum))
}

/// A client that works in its own directory.
struct BenchClient {
    target: BenchTarget,
    directory: VPath,
    files: Vec<VPath>,
    versions: Vec<Version>,
    content: Vec<u8>,
    written: u64,
}

impl BenchClient {
    fn new(target: &BenchTarget, number: usize, args: &PlaceArgs) -> anyhow::Result<Self> {
        let path = |text: String| VPath::parse(&text);
        let directory = path(format!("{}/{number}", SessionId::fresh()))?;
        let files = (0..args.files)
            .map(|file| path(format!("{directory}/{file:04}.txt")))
            .collect::<Result<_, _>>()?;
        let content = incompressible_text(args.bytes);
        Ok(Self {
            target: target.clone(),
            directory,
            files,
            versions: Vec::new(),
            content,
            written: 0,
        })
    }

    /// Returns a content that was not written before.
    fn next_content(&mut self) -> Vec<u8> {
        self.written += 1;
        let stamp = format!("{:016x}", self.written);
        let mut content = self.content.clone();
        let stamped = content.len().min(stamp.len());
        content[..stamped].copy_from_slice(&stamp.as_bytes()[..stamped]);
        content
    }

    async fn fill(mut self) -> anyhow::Result<(Self, u64)> {
        for file in self.files.clone() {
            let content = self.next_content();
            self.versions
                .push(self.write(&file, content, Expect::Absent).await?);
        }
        Ok((self, 0))
    }

    async fn write(
        &self,
        path: &VPath,
        content: Vec<u8>,
        expect: Expect,
    ) -> anyhow::Result<Version> {
        Ok(self
            .target
            .files
            .write(path, content.into(), expect)
            .await?)
    }

    /// Repeats `op` for `span`, and returns the number of repetitions.
    async fn repeat(mut self, op: BenchOp, span: Duration) -> anyhow::Result<(Self, u64)> {
        let files = self.target.files.clone();
        let new = VPath::parse(&format!("{}-new", self.directory))?;
        let mut opened = match op {
            BenchOp::Append => Some(
                self.target
                    .sessions
                    .create(&SessionId::fresh(), NewSession::default())
                    .await?,
            ),
            BenchOp::Write | BenchOp::Overwrite | BenchOp::Read | BenchOp::Stat | BenchOp::List => {
                None
            }
        };
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed() < span {
            let at = usize::try_from(count).unwrap_or_default() % self.files.len().max(1);
            match op {
                BenchOp::Write => {
                    let content = self.next_content();
                    let path = new.join(&format!("{:016x}", self.written))?;
                    self.write(&path, content, Expect::Absent).await?;
                }
                BenchOp::Overwrite => {
                    let content = self.next_content();
                    let expect = Expect::Version(self.versions[at].clone());
                    self.versions[at] = self.write(&self.files[at], content, expect).await?;
                }
                BenchOp::Read => {
                    let read = files.read(&self.files[at], ReadRange::ALL).await;
                    ensure_correct(read?.0.len() == self.content.len())?;
                }
                BenchOp::Stat => {
                    let stat = files.stat(&self.files[at]).await?;
                    ensure_correct(stat.size == self.content.len() as u64)?;
                }
                BenchOp::List => {
                    let listed = files.list(&self.directory).await?;
                    ensure_correct(listed.len() == self.files.len())?;
                }
                BenchOp::Append => {
                    let text = String::from_utf8(self.next_content())?;
                    let entry = Entry::User(UserInput::text(RunId::fresh(), text));
                    if let Some(opened) = &mut opened {
                        opened.writer.append(vec![entry]).await?;
                    }
                }
            }
            count += 1;
        }
        if let Some(opened) = opened {
            opened.writer.close().await;
        }
        Ok((self, count))
    }
}

/// Fails if a result is wrong: wrong results may be fast and must not be counted.
fn ensure_correct(is_right: bool) -> anyhow::Result<()> {
    if is_right {
        Ok(())
    } else {
        Err(anyhow::anyhow!("an operation gave a wrong answer"))
    }
}

/// Returns text that no store can compress by much.
fn incompressible_text(bytes: usize) -> Vec<u8> {
    let mut text = String::with_capacity(bytes + 64);
    let mut hash = ContentHash::of(b"bench");
    while text.len() < bytes {
        text.push_str(&hash.to_string());
        hash = ContentHash::of(&hash.0);
    }
    text.truncate(bytes);
    text.into_bytes()
}
