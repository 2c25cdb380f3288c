//! The place for tests of conversation archives of a layout, and asking an endpoint for its context
//! window.

use crate::support::{agent, block_on, journal, model, session, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_agent::{ArchiveTag, RunOptions, UNKNOWN_WINDOW_TOKENS};
use stead_core::Owner;
use stead_model::{ModelSettings, ScriptedModel, connect};
use stead_testkit::{FakeModel, FakeWire, reply};

fn openpaw(dir: &Path) {
    std::fs::create_dir_all(dir.join("agent")).unwrap();
    for name in ["AGENT", "USER", "SOUL", "HEARTBEAT"] {
        std::fs::write(dir.join(format!("agent/{name}.md")), "# Text").unwrap();
    }
}

fn archived(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join("memory/conversations")) else {
        return Vec::new();
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[test]
fn a_conversation_is_kept_once_for_each_point_with_the_times_of_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    openpaw(dir.path());
    let script = "- calls: [{tool: ls, args: {path: agent}}]\n- text: Four files.\n- text: Bye.";
    block_on(async {
        let model = Arc::new(ScriptedModel::parse("s", script).unwrap());
        let agent = agent(dir.path(), model).await;
        let owner = Owner::default();
        let id = session("chat");
        let archive = agent.archive();
        let keep = || archive.save(&owner, &id, ArchiveTag::Manual);
        let mut talk = agent.session(id.clone());
        talk.run(text("What is here?"), RunOptions::default())
            .await
            .unwrap();
        let first = keep().await.unwrap().unwrap();
        assert_eq!(
            keep().await.unwrap(),
            Some(first.clone()),
            "the same point is kept once"
        );
        assert_eq!(archived(dir.path()).len(), 2, "Markdown and JSON");

        let (lines, state) = journal(&agent, &id).await;
        let at = |turn: usize| {
            lines
                .iter()
                .find(|line| line.seq == state.turns[turn].seq)
                .unwrap()
                .at
        };
        let kept: Value =
            serde_json::from_slice(&std::fs::read(&archived(dir.path())[0]).unwrap()).unwrap();
        let said = |turn: usize, role: &str, content: &str| json!({"timestamp": at(turn), "role": role, "content": content, "tool_calls": [], "tool_call_id": null});
        let call = state.turns[1].message.calls().next().unwrap().clone();
        let mut asked = said(1, "ai", "");
        asked["tool_calls"] = json!([{"id": call.id, "name": "ls", "args": {"path": "agent"}}]);
        let messages = kept["messages"].as_array().unwrap();
        assert_eq!(
            [&messages[0], &messages[1], &messages[3]],
            [
                &said(0, "human", "What is here?"),
                &asked,
                &said(3, "ai", "Four files."),
            ]
        );
        assert_eq!(
            (&messages[2]["role"], &messages[2]["tool_call_id"]),
            (&json!("tool"), &json!(call.id))
        );
        assert_eq!(
            (&kept["started_at"], &kept["ended_at"]),
            (&json!(at(0)), &json!(at(3)))
        );
        assert_eq!(
            (&kept["tags"], &kept["message_count"], &kept["session_key"]),
            (&json!(["manual"]), &json!(4), &json!("chat"))
        );
        let name = format!(
            "memory/conversations/{}.md",
            kept["conversation_id"].as_str().unwrap()
        );
        assert_eq!(first.as_str(), name);
        let markdown = std::fs::read_to_string(dir.path().join(name)).unwrap();
        for part in [
            "**[User]**",
            "**[Agent]**",
            "**[Tool Call: ls]**",
            "**[Tool Result]**",
            "\n---\n",
            "**Messages:** 4",
        ] {
            assert!(markdown.contains(part), "{part}: {markdown}");
        }

        talk.run(text("Bye"), RunOptions::default()).await.unwrap();
        assert_ne!(keep().await.unwrap(), Some(first));
        assert_eq!(archived(dir.path()).len(), 4);
    });
}

#[test]
fn where_a_layout_keeps_no_conversations_nothing_is_written() {
    let server = FakeModel::start(vec![reply().text("fine")]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            agent
                .archive()
                .save(&Owner::default(), &session("s"), ArchiveTag::Compact)
                .await
                .unwrap(),
            None
        );
    });
    assert!(archived(dir.path()).is_empty());
}

/// A server of models that knows nothing but how much fits, and counts who asks.
fn window_server(window: u64) -> (String, Arc<std::sync::atomic::AtomicUsize>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let asked = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = asked.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            counted.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            let body = json!({"data": [{"id": "m", "max_model_len": window}]}).to_string();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close";
            let _ = write!(
                stream,
                "{head}\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (url, asked)
}

#[test]
fn an_endpoint_is_asked_how_much_fits_once_and_only_when_it_matters() {
    let (url, asked) = window_server(32_768);
    let asked = || asked.load(std::sync::atomic::Ordering::SeqCst);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let settings = ModelSettings {
            name: "vllm:m".into(),
            base_url: Some(url),
            ..ModelSettings::default()
        };
        let vllm = agent(dir.path(), connect(&settings, &|_| None).unwrap()).await;
        let fresh = vllm.session(session("new"));
        assert_eq!(
            (fresh.window_or_default().await, asked()),
            (UNKNOWN_WINDOW_TOKENS, 0),
            "it does not matter yet"
        );
        let long = "a word ".repeat(6_000);
        let script = Arc::new(ScriptedModel::parse("s", "- text: ok").unwrap());
        let told = agent(dir.path(), script).await;
        told.session(session("long"))
            .run(text(&long), RunOptions::default())
            .await
            .unwrap();
        let mut grown = vllm.session(session("long"));
        grown.load().await.unwrap();
        assert_eq!(grown.window(), None);
        assert_eq!((grown.window_or_default().await, asked()), (32_768, 1));
        assert_eq!(
            (grown.window_or_default().await, asked()),
            (32_768, 1),
            "once"
        );
        assert_eq!(grown.window(), Some(32_768));
        let mut other = told.session(session("long"));
        other.load().await.unwrap();
        assert_eq!(
            other.window_or_default().await,
            UNKNOWN_WINDOW_TOKENS,
            "nobody knows"
        );
    });
}
