//! Agents, hosts and subscriptions for the tests of this crate.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use stead_agent::Agent;
use stead_core::{
    Block, Client, Command, Cursor, Entry, InputCommand, Presence, SessionAddress, SessionEvent,
    SessionEventBody, SessionId, Subscription,
};
use stead_host::Host;
use stead_model::ModelSettings;
use stead_testkit::FakeModel;

/// A test that waits longer fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
        .block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("in time") })
}

/// An agent of the folder `dir` that asks `server`, with these settings.
pub(crate) async fn agent(dir: &Path, server: &FakeModel, settings: &str) -> Arc<Agent> {
    std::fs::write(dir.join("AGENTS.md"), "You are brief.\n").unwrap();
    std::fs::write(dir.join("agent.yaml"), settings).unwrap();
    let model = ModelSettings {
        name: "openai:x".into(),
        base_url: Some(server.openai_url()),
        ..ModelSettings::default()
    };
    Agent::builder()
        .workspace(dir)
        .model_settings(model)
        .build()
        .await
        .unwrap()
}

/// A host with one agent, and the address of a session of it.
pub(crate) async fn host(
    dir: &Path,
    server: &FakeModel,
    settings: &str,
) -> (Arc<Host>, SessionAddress) {
    let host = Host::new();
    host.add_agent("main", agent(dir, server, settings).await);
    let address = host
        .address("main", SessionId::new("s").unwrap())
        .await
        .unwrap();
    (host, address)
}

pub(crate) fn input(text: &str) -> Command {
    Command::Input(InputCommand::new(vec![Block::text(text)]))
}

pub(crate) async fn subscribe(host: &Host, address: &SessionAddress) -> Box<dyn Subscription> {
    host.subscribe(address, Cursor::Start, Presence::Watches)
        .await
        .unwrap()
}

/// Somebody who can be asked about the calls of a session, as long as this exists.
pub(crate) async fn person(host: &Host, address: &SessionAddress) -> Box<dyn Subscription> {
    host.subscribe(address, Cursor::Now, Presence::Answers)
        .await
        .unwrap()
}

/// Reads events until `done` says so, and returns all of them.
pub(crate) async fn until(
    events: &mut dyn Subscription,
    mut done: impl FnMut(&SessionEvent) -> bool,
) -> Vec<SessionEvent> {
    let mut seen = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        let stop = done(&event);
        seen.push(event);
        if stop {
            return seen;
        }
    }
}

/// Whether this is the end of a run.
pub(crate) fn is_end(event: &SessionEvent) -> bool {
    matches!(&event.body, SessionEventBody::Entry(line) if matches!(line.entry, Entry::End(_)))
}

/// The kinds of the entries among `events`.
pub(crate) fn kinds(events: &[SessionEvent]) -> Vec<String> {
    entries(events)
        .into_iter()
        .map(|(_, entry)| format!("{:?}", entry.kind()).to_lowercase())
        .collect()
}

/// The entries among `events` with their numbers.
pub(crate) fn entries(events: &[SessionEvent]) -> Vec<(u64, Entry)> {
    events
        .iter()
        .filter_map(|event| match &event.body {
            SessionEventBody::Entry(line) => Some((line.seq, line.entry.clone())),
            SessionEventBody::Live(_) => None,
        })
        .collect()
}

/// The texts of a person among `events`: inputs and steering messages.
pub(crate) fn said(events: &[SessionEvent]) -> Vec<String> {
    let text = |blocks: &[Block]| match blocks.first() {
        Some(Block::Text { text }) => text.clone(),
        other => format!("{other:?}"),
    };
    entries(events)
        .iter()
        .filter_map(|(_, entry)| match entry {
            Entry::User(input) if !input.content.is_empty() => Some(text(&input.content)),
            Entry::Steer(steer) => Some(text(&steer.content)),
            _ => None,
        })
        .collect()
}
