//! The other process: it runs sessions until it is killed.

use super::{AGENT, host_at};
use crate::support::{input, person};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_core::{Block, Command, InputCommand, QueueMode, SessionId};
use stead_host::{Host, SessionOptions};
use stead_testkit::{Child, ChildRole, FakeModel, child_role};
use tokio::task::JoinSet;

/// A child that nobody kills ends by itself.
const LIFETIME: Duration = Duration::from_secs(60);

/// What the other process does with its sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Errand {
    /// Sends several messages to each of its sessions, and prints those that were acknowledged.
    Talk,
    /// Sends one message to each of its sessions.
    RunOnce,
}

/// Starts the other process with these sessions.
pub(crate) fn spawn(
    folder: &Path,
    model: &FakeModel,
    (errand, seed): (Errand, u64),
    sessions: &[String],
) -> Child {
    let variables = [
        ("folder", folder.to_str().unwrap().to_owned()),
        ("model", model.openai_url()),
        ("errand", format!("{errand:?}")),
        ("seed", seed.to_string()),
        ("sessions", sessions.join(" ")),
    ];
    Child::spawn(
        "two_processes::kills::nothing_is_lost_or_doubled_when_a_process_is_killed_over_files",
        variables,
    )
}

/// Does the work of the child process, if this is one. Returns whether it is.
pub(super) fn run_as_child() -> bool {
    let Some(role) = child_role() else {
        return false;
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    // The parent kills this process before.
    let _ = runtime.block_on(async { tokio::time::timeout(LIFETIME, work(role)).await });
    true
}

async fn work(role: ChildRole) {
    let host = host_at(Path::new(role.get("folder")), role.get("model")).await;
    let seed: u64 = role.get("seed").parse().unwrap();
    let mut talks = JoinSet::new();
    for (n, session) in role.get("sessions").split(' ').enumerate() {
        let random = StdRng::seed_from_u64(seed.wrapping_add(n as u64));
        let session = session.to_owned();
        match role.get("errand") {
            "Talk" => talks.spawn(talk(host.clone(), session, random)),
            _ => talks.spawn(run_once(host.clone(), session)),
        };
    }
    talks.join_all().await;
}

async fn run_once(host: Arc<Host>, session: String) {
    let address = host
        .address(AGENT, SessionId::new(&session).unwrap())
        .await
        .unwrap();
    let handle = host
        .open(&address, SessionOptions::default())
        .await
        .unwrap();
    handle.send(input("go")).await.unwrap();
    std::future::pending::<()>().await;
}

async fn talk(host: Arc<Host>, session: String, mut random: StdRng) {
    let address = host
        .address(AGENT, SessionId::new(&session).unwrap())
        .await
        .unwrap();
    let handle = host
        .open(&address, SessionOptions::default())
        .await
        .unwrap();
    // With a person, questions wait in this process; without, the run parks.
    let _person = match random.random_bool(0.5) {
        true => Some(person(&host, &address).await),
        false => None,
    };
    for n in 0..3 {
        let text = format!("<A {session} {n}>");
        let key = random.random_bool(0.5).then(|| text.clone());
        let command = random_message(&text, &mut random);
        let sent = match key {
            Some(key) => handle.send_once(command, &key).await,
            None => handle.send(command).await,
        };
        println!("{text}: {sent:?}");
        if sent.is_ok() {
            println!("ACK {text}");
        }
        let pause = random.random_range(0..80);
        tokio::time::sleep(Duration::from_millis(pause)).await;
    }
    std::future::pending::<()>().await;
}

/// A message that reaches a session in one of the possible ways.
pub(crate) fn random_message(text: &str, random: &mut StdRng) -> Command {
    let content = vec![Block::text(text)];
    let modes = [
        None,
        Some(QueueMode::Collect),
        Some(QueueMode::Followup),
        Some(QueueMode::Steer),
        Some(QueueMode::Interrupt),
    ];
    match random.random_range(0..6) {
        5 => Command::Steer {
            content,
            origin: stead_core::Origin::default(),
        },
        n => Command::Input(InputCommand {
            mode: modes[n],
            ..InputCommand::new(content)
        }),
    }
}

/// The texts that the other process was acknowledged, from its output.
pub(crate) fn acknowledged(output: &str) -> Vec<String> {
    let acknowledged = output.lines().filter_map(|line| line.split_once("ACK "));
    acknowledged.map(|(_, text)| text.to_owned()).collect()
}
