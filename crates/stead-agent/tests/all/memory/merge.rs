//! The place for tests of merging facts into curated memory: concurrent human edits, unusable
//! models, schedule, and the save and forget tools.

use super::{Obedient, agent, agent_of, curated, of_days, prompt, read, say, step, work};
use crate::support::{block_on, text};
use serde_json::json;
use std::sync::Arc;
use stead_agent::{ApprovalPolicy, RunOptions};
use stead_core::{Block, Owner, SessionId, ToolCall};
use stead_model::ModelError;
use stead_store::OsDisk;
use tokio_util::sync::CancellationToken;

#[test]
fn what_a_person_writes_meanwhile_stays_and_is_in_the_next_prompt() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let agent = agent(dir.path(), model.clone()).await;
        std::fs::write(dir.path().join("MEMORY.md"), "# Mine\r\n* by hand").unwrap();
        say(&agent, "s", "fact: one").await;
        let path = dir.path().join("MEMORY.md");
        *model.before.lock().unwrap() = Some(Box::new(move |question| {
            if question.contains("New facts:") {
                let text = std::fs::read_to_string(&path).unwrap();
                std::fs::write(&path, format!("{text}\r\nwritten meanwhile\r\n")).unwrap();
            }
            Ok(())
        }));
        work(&agent).await;
        let memory = read(dir.path(), "MEMORY.md");
        assert!(
            memory.starts_with("# Mine\r\n* by hand\r\nwritten meanwhile\r\n- one <!-- stead: "),
            "{memory:?}"
        );
        let prompt = prompt(&agent).await;
        assert!(
            prompt.contains("written meanwhile\r\n- one\n") && !prompt.contains("<!-- stead"),
            "{prompt}"
        );
        // As after a checkout: another text in the place of all of it.
        std::fs::write(dir.path().join("MEMORY.md"), "# Another branch\n").unwrap();
        say(&agent, "s", "fact: two").await;
        work(&agent).await;
        let memory = read(dir.path(), "MEMORY.md");
        assert!(
            memory.starts_with("# Another branch\n- two <!--") || memory.contains("- two <!--"),
            "{memory:?}"
        );
        assert!(!memory.contains("- one"), "{memory:?}");
    });
}

#[test]
fn a_model_of_no_use_is_done_without() {
    block_on(async {
        for what in ["fails", "works"] {
            let dir = tempfile::tempdir().unwrap();
            let model = Obedient::quiet();
            let agent = agent(dir.path(), model.clone()).await;
            std::fs::write(dir.path().join("MEMORY.md"), "- Likes tea!\n").unwrap();
            say(&agent, "s", "fact: likes tea\nfact: likes coffee").await;
            *model.before.lock().unwrap() = Some(Box::new(move |question| {
                let fails = what == "fails" && question.contains("New facts:");
                if fails {
                    Err(ModelError::Config("no".to_owned()))
                } else {
                    Ok(())
                }
            }));
            work(&agent).await;
            let want: &[&str] = if what == "fails" {
                &["likes coffee"]
            } else {
                &["likes tea", "likes coffee"]
            };
            assert_eq!(curated(&agent, &Owner::default()).await, want, "{what}");
            let record = agent
                .memory()
                .records(&Owner::default(), 1)
                .await
                .unwrap()
                .remove(0);
            assert_eq!(
                (record.facts.len(), record.by.is_err()),
                (2, what == "fails")
            );
            assert!(
                record.shown.after.contains("likes coffee")
                    && record.shown.before == "- Likes tea!\n"
            );
        }
    });
}

#[test]
fn merges_wait_for_their_time_and_old_days_are_put_away() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let agent = agent_of(
            dir.path(),
            model.clone(),
            Arc::new(OsDisk),
            Vec::new(),
            |config| {
                config.memory.consolidate_minutes = 30;
            },
        )
        .await;
        std::fs::create_dir(dir.path().join("memory")).unwrap();
        std::fs::write(
            dir.path().join("memory/2020-01-01.md"),
            "- old <!-- stead: id=old by=user -->\n",
        )
        .unwrap();
        for words in ["fact: one", "fact: two", "fact: three"] {
            say(&agent, "s", words).await;
            work(&agent).await;
        }
        // The first is merged at once, with what was there; the others wait.
        assert_eq!(curated(&agent, &Owner::default()).await, ["old", "one"]);
        assert_eq!(
            of_days(&agent, &Owner::default()).await,
            ["one", "two", "three"]
        );
        assert!(read(dir.path(), "memory/archive/2020-01-01.md").contains("- old"));
        assert_eq!(
            agent
                .memory()
                .status(&Owner::default())
                .await
                .unwrap()
                .unmerged,
            2
        );
        agent.memory().consolidate(&Owner::default()).await.unwrap();
        assert_eq!(
            curated(&agent, &Owner::default()).await,
            ["old", "one", "two", "three"]
        );
    });
}

fn call(name: &str, args: serde_json::Value) -> Vec<Block> {
    vec![Block::ToolCall(ToolCall {
        id: format!("c-{name}"),
        name: name.into(),
        args,
        invalid: None,
        signature: None,
    })]
}

#[test]
fn the_agent_saves_and_forgets_and_nothing_is_destroyed() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::new(|request| match step(request) {
            0 => call(
                "memory_save",
                json!({"content": "likes tea", "tags": ["drinks"]}),
            ),
            _ => vec![Block::text("ok")],
        });
        let agent = agent(dir.path(), model).await;
        let mut session = agent.session(SessionId::new("s").unwrap());
        session
            .run(text("Remember it."), RunOptions::default())
            .await
            .unwrap();
        work(&agent).await;
        assert_eq!(of_days(&agent, &Owner::default()).await, ["likes tea"]);
        agent.memory().consolidate(&Owner::default()).await.unwrap();
        std::fs::write(
            dir.path().join("memory/2026-01-01.md"),
            "- likes teas <!-- stead: id=other -->\n",
        )
        .unwrap();
        let forget = async |query: &str| {
            let args = json!({"query": query});
            let called = agent
                .sessionless()
                .call_tool(
                    "memory_forget",
                    args,
                    &ApprovalPolicy::DenyAll,
                    CancellationToken::new(),
                )
                .await;
            crate::support::blocks(&called.content)
        };
        assert!(forget("likes").await.contains("several facts fit"));
        assert!(forget("hates").await.contains("no remembered fact"));
        let done = forget("Likes tea.").await;
        assert!(
            done.starts_with("Forgotten:") && done.contains("MEMORY.md"),
            "{done}"
        );
        assert_eq!(
            curated(&agent, &Owner::default()).await,
            Vec::<String>::new()
        );
        assert_eq!(of_days(&agent, &Owner::default()).await, ["likes teas"]);
        let kept = read(dir.path(), "memory/archive/forgotten.md");
        assert!(
            kept.contains("likes tea <!-- stead: ")
                && kept.contains("tags=drinks")
                && kept.contains("session=s")
        );
    });
}
