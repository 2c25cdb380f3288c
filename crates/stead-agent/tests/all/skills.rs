//! The place for tests of loading a skill in a run: once, recorded, and again only after a rewind.

use crate::support::{agent, journal, model, results, session, text};
use serde_json::json;
use stead_agent::RunOptions;
use stead_core::{Entry, ResultStatus};
use stead_store::LockWait;
use stead_testkit::{FakeModel, FakeWire, reply};

#[tokio::test]
async fn a_skill_is_loaded_once_and_again_only_after_a_rewind() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("skills/pdf")).unwrap();
    let skill = "---\nname: pdf\ndescription: Reads PDF files.\n---\nThe whole body.\n";
    std::fs::write(dir.path().join("skills/pdf/SKILL.md"), skill).unwrap();
    std::fs::write(
        dir.path().join("agent.yaml"),
        "permissions:\n- {operations: [read], paths: [skills/pdf/secret.md], mode: deny}\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("skills/pdf/secret.md"), "hidden").unwrap();
    let call = |args| reply().call("load_skill", args);
    let server = FakeModel::start(vec![
        reply()
            .call("load_skill", json!({"name": "pdf"}))
            .call("Skill", json!({"skill": "pdf"})),
        reply().text("loaded"),
        call(json!({"name": "pdf"})),
        call(json!({"name": "pdf", "path": "secret.md"})),
        reply().text("loaded"),
        call(json!({"name": "pdf"})),
        reply().text("loaded"),
    ]);
    let agent = agent(dir.path(), model(&server, FakeWire::Chat)).await;

    agent
        .session(session("s"))
        .run(text("one"), RunOptions::default())
        .await
        .unwrap();
    // Another process goes on with it and knows from the journal.
    let mut again = agent.session(session("s"));
    again.run(text("two"), RunOptions::default()).await.unwrap();
    assert!(again.state().skills.contains_key("pdf"));
    again.rewind(1, LockWait::No).await.unwrap();
    assert!(again.state().skills.is_empty());
    again
        .run(text("three"), RunOptions::default())
        .await
        .unwrap();

    let (lines, state) = journal(&agent, &session("s")).await;
    let said: Vec<(ResultStatus, bool)> = results(&lines)
        .into_iter()
        .map(|(_, status, text)| (status, text.contains("The whole body.")))
        .collect();
    let ok = ResultStatus::Ok;
    let denied = ResultStatus::Denied;
    assert_eq!(
        said,
        [
            (ok, true),
            (ok, false),
            (ok, false),
            (denied, false),
            (ok, true)
        ]
    );
    let activations = lines
        .iter()
        .filter(|line| matches!(&line.entry, Entry::Result(r) if r.activates.is_some()));
    let recorded: Vec<u64> = activations.map(|line| line.seq).collect();
    assert_eq!((recorded.len(), state.skills["pdf"].seq), (2, recorded[1]));
}
