//! The place for tests of concurrent appends by several agents to one file without a lost line.

use super::tenants::{in_folder, in_store, template};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApprovalPolicy};
use stead_core::{Owner, ResultStatus, SessionId};
use stead_place::{IsolationScope, Place};
use stead_store::{DocVersion, connect};
use stead_testkit::FakeModel;
use stead_testkit::servers::{ServerKind, shared};
use stead_vfs::{ReadRange, VPath};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const WRITERS: usize = 8;
const LINES: usize = 10;

async fn agent(folder: &Path, place: Arc<dyn Place>) -> Arc<Agent> {
    let model = super::support::model(&FakeModel::start(Vec::new()), stead_testkit::FakeWire::Chat);
    let builder = super::support::builder(folder, model).place(place);
    builder.build().await.unwrap()
}

async fn append(folder: &Path, places: Vec<Arc<dyn Place>>) {
    let mut tasks = JoinSet::new();
    for (writer, place) in places.iter().enumerate() {
        let agent = agent(folder, place.clone()).await;
        tasks.spawn(async move {
            for line in 0..LINES {
                let args = json!({"file_path": "log.txt", "content": format!("{writer}.{line}\n"), "mode": "append"});
                let called = agent.sessionless().call_tool("write_file", args, &ApprovalPolicy::DenyAll, CancellationToken::new()).await;
                assert_eq!(called.status, ResultStatus::Ok, "{:?}", called.content);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    let files = places[0].files(&Owner::default(), &SessionId::sessionless(), None);
    let (text, _) = files
        .read(&VPath::parse("log.txt").unwrap(), ReadRange::ALL)
        .await
        .unwrap();
    let mut found: Vec<&str> = std::str::from_utf8(&text).unwrap().lines().collect();
    found.sort_unstable();
    let mut all: Vec<String> = (0..WRITERS)
        .flat_map(|w| (0..LINES).map(move |l| format!("{w}.{l}")))
        .collect();
    all.sort_unstable();
    assert_eq!(found, all);
}

async fn append_in(url: &str) {
    let folder = template();
    let namespace = DocVersion::fresh().to_string();
    let mut places: Vec<Arc<dyn Place>> = Vec::new();
    for _ in 0..WRITERS {
        let store = connect(url).await.unwrap();
        places.push(Arc::new(in_store(
            &store,
            folder.path(),
            "main",
            &namespace,
            IsolationScope::Agent,
        )));
    }
    append(folder.path(), places).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_agents_append_to_one_file_and_no_line_is_lost() {
    let folder = template();
    let places = (0..WRITERS)
        .map(|_| Arc::new(in_folder(folder.path(), IsolationScope::Agent)) as Arc<dyn Place>);
    append(folder.path(), places.collect()).await;
    append_in(&format!(
        "sqlite:{}",
        folder.path().join("agents/store.db").display()
    ))
    .await;
    for kind in [ServerKind::Redis, ServerKind::Postgres, ServerKind::Mysql] {
        append_in(&shared(kind)).await;
    }
}
