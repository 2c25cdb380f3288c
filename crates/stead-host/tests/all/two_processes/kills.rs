//! Random schedules: a process that runs sessions is killed while another one follows them and sends
//! to them. Nothing that was acknowledged is lost, and nothing happens twice.

use super::child::{self, Errand};
use super::follower::Follower;
use super::{Store, Workspace, marking_model};
use futures_util::{StreamExt, stream};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::sync::Arc;
use std::time::Duration;
use stead_core::{AnswerPolicy, Command, InputId, InputStatus, SpendAmount};
use stead_host::Host;
use stead_testkit::{Death, FakeModel, rounds};
use tokio::task::JoinSet;

/// The sessions that one process runs when it is killed.
const SESSIONS: usize = 10;
/// The processes that work at the same time.
const AT_ONCE: usize = 2;
const PATIENCE: Duration = Duration::from_secs(40);

#[test]
fn nothing_is_lost_or_doubled_when_a_process_is_killed_over_files() {
    if child::run_as_child() {
        return;
    }
    kill_many(Store::Files, rounds(12));
}

#[test]
fn nothing_is_lost_or_doubled_when_a_process_is_killed_over_postgres() {
    kill_many(Store::Postgres, rounds(8));
}

/// Kills `kills` processes, each with several sessions.
fn kill_many(store: Store, kills: usize) {
    let seed = seed();
    println!(
        "STEAD_TEST_SEED={seed} ({store:?}, {} schedules)",
        kills * SESSIONS
    );
    let model = Arc::new(marking_model());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let schedules = (0..kills as u64).map(|n| {
            let random = StdRng::seed_from_u64(seed.wrapping_add(1000 * n));
            kill_one(store, model.clone(), random)
        });
        let running = stream::iter(schedules).buffer_unordered(AT_ONCE);
        running.collect::<()>().await;
    });
    assert_eq!(model.rejections(), []);
}

async fn kill_one(store: Store, model: Arc<FakeModel>, mut random: StdRng) {
    let workspace = Workspace::new(store, "");
    let sessions: Vec<String> = (0..SESSIONS).map(|n| format!("s{n}")).collect();
    let host = workspace.host(&model).await;
    let mut followers = Vec::new();
    for session in &sessions {
        followers.push(Arc::new(Follower::start(&host, session).await));
    }
    let errand = (Errand::Talk, random.random());
    let mut process = child::spawn(workspace.path(), &model, errand, &sessions);
    while followers
        .iter()
        .all(|follower| follower.seen().lines.is_empty())
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut talks = JoinSet::new();
    for (n, follower) in followers.iter().cloned().enumerate() {
        let random = StdRng::seed_from_u64(random.random());
        talks.spawn(async move { (n, talk(follower, random).await) });
    }
    let delay = random.random_range(0..900);
    tokio::time::sleep(Duration::from_millis(delay)).await;
    process.kill();
    let ended = tokio::task::spawn_blocking(move || process.wait(PATIENCE))
        .await
        .unwrap();
    assert_eq!(ended.death, Death::Signal(9), "{ended}");
    let theirs = child::acknowledged(&ended.stdout);
    let mut ours = talks.join_all().await;
    ours.sort_by_key(|(n, _)| *n);
    for (n, (mut expected, receipts)) in ours {
        let follower = &followers[n];
        let session = &follower.address.session;
        let prefix = format!("<A {session} ");
        expected.extend(
            theirs
                .iter()
                .filter(|text| text.starts_with(&prefix))
                .cloned(),
        );
        take_up(follower, &mut expected, &mut random).await;
        let seen = follower.until_quiet(&expected, PATIENCE).await;
        for text in &expected {
            assert_eq!(seen.count(text), 1, "{session}: {text}");
        }
        seen.check(&workspace.marks());
        until_settled(&host, follower, &receipts).await;
    }
    drop(followers);
    let closed = tokio::time::timeout(PATIENCE, host.close()).await;
    assert!(closed.is_ok(), "an actor has not ended");
}

/// Sends to a session while the other process runs it. Returns what was acknowledged: the texts and
/// the commands.
async fn talk(follower: Arc<Follower>, mut random: StdRng) -> (Vec<String>, Vec<InputId>) {
    let session = follower.address.session.clone();
    let mut texts = Vec::new();
    let mut receipts = Vec::new();
    for n in 0..random.random_range(0..4) {
        let pause = random.random_range(0..150);
        tokio::time::sleep(Duration::from_millis(pause)).await;
        if random.random_bool(0.15) {
            let cancel = Command::Cancel {
                run: None,
                by: "ann".into(),
            };
            if let Ok(receipt) = follower.send(cancel, None).await {
                receipts.push(receipt.input_id);
            }
            continue;
        }
        let text = format!("<B {session} {n}>");
        let key = random.random_bool(0.5).then(|| text.clone());
        let command = child::random_message(&text, &mut random);
        let receipt = follower
            .send(command.clone(), key.as_deref())
            .await
            .unwrap();
        if key.is_some() && random.random_bool(0.3) {
            let again = follower.send(command, key.as_deref()).await.unwrap();
            assert_eq!(again.input_id, receipt.input_id);
        }
        texts.push(text);
        receipts.push(receipt.input_id);
    }
    (texts, receipts)
}

/// Takes a session up after its process was killed, in one of the possible ways.
async fn take_up(follower: &Follower, expected: &mut Vec<String>, random: &mut StdRng) {
    match random.random_range(0..3) {
        0 => {
            let resume = Command::Resume {
                raise: SpendAmount::default(),
                answers: AnswerPolicy::Ask,
                changes: Vec::new(),
            };
            // There may be nothing to resume.
            let _ = follower.send(resume, None).await;
        }
        1 => {
            let text = format!("<B {} last>", follower.address.session);
            let command = child::random_message(&text, random);
            follower.send(command, None).await.unwrap();
            expected.push(text);
        }
        // Whoever waits takes it up.
        _ => {}
    }
}

/// Waits until nothing that was sent waits any more.
async fn until_settled(host: &Arc<Host>, follower: &Follower, receipts: &[InputId]) {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    for receipt in receipts {
        loop {
            let status = stead_core::Client::status(&**host, &follower.address, receipt).await;
            if status.unwrap() != Some(InputStatus::Waiting) {
                break;
            }
            assert!(
                tokio::time::Instant::now() < deadline,
                "{receipt:?} still waits"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// The seed of the schedules: a new one, or that of `STEAD_TEST_SEED`.
fn seed() -> u64 {
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is how a person repeats a schedule"
    )]
    let given = std::env::var("STEAD_TEST_SEED");
    given.map_or_else(|_| rand::random(), |text| text.parse().unwrap())
}
