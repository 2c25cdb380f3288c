//! The place for tests of offloading long results, messages and media to files: limits, quota,
//! permissions, forks, cleanup and secrets.

use crate::support::{
    TestTool, agent, agent_on, block_on, blocks, builder, journal, local_place, model, results,
    session, text,
};
use crate::tenants::{in_folder, in_store, template};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::stream::BoxStream;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApplyMode, RunOptions, open_folder};
use stead_core::{Block, Entry, Media, Owner, Redactor, ResultStatus, Risk, RunOutcome, UserId};
use stead_model::{Delta, Model, ModelError, ModelFacts, Request, ScriptedModel};
use stead_place::{EphemeralPlace, IsolationScope, LocalPlace, Place, PlaceSettings};
use stead_store::{LockWait, MemoryStore, OsDisk, Store};
use stead_testkit::{FakeModel, FakeWire, RequestTurn, reply};
use stead_tools::{Output, Tool};
use stead_vfs::{Bounds, Case, Expect, GrepMode, GrepQuery, ReadRange, Syntax, VPath, Vfs};
use stead_workspace::{
    FeatureSwitch, Layout, ModelUse, OpenOptions, ScaffoldFile, offload_folder, scaffold,
};

/// About 37,000 tokens.
fn long_text() -> String {
    (1..=10_000)
        .map(|n| format!("row {n:05} needle-{n}\n"))
        .collect()
}

/// A tool that gives back what it is made with.
fn gives(name: &str, content: Vec<Block>) -> Arc<dyn Tool> {
    TestTool::make(name, Risk::READS, move |_, _| {
        let content = content.clone();
        async move {
            Ok(Output {
                content,
                ..Output::default()
            })
        }
    })
}

fn scripted(script: &str) -> Arc<dyn Model> {
    Arc::new(ScriptedModel::parse("s", script).unwrap())
}

/// Calls `big`, then reads and searches what it is told to.
fn reading(folder: &str) -> String {
    let file = format!("{folder}/call_1.txt");
    format!(
        r#"
- calls: [{{tool: big, args: {{}}, id: call_1}}]
- calls:
  - {{tool: read_file, args: {{file_path: {file}, offset: 4999, limit: 1}}, id: read}}
  - {{tool: grep_files, args: {{pattern: needle-7777$, path: {file}}}, id: grep}}
  - {{tool: write_file, args: {{file_path: {file}, content: x, mode: overwrite}}}}
  - {{tool: delete_file, args: {{file_path: {folder}}}}}
- text: Done.
"#
    )
}

async fn agent_at(folder: &Path, place: Arc<dyn Place>, script: &str) -> Arc<Agent> {
    builder(folder, scripted(script))
        .place(place)
        .disable(FeatureSwitch::Shell)
        .tool(gives("big", text(&long_text())))
        .build()
        .await
        .unwrap()
}

fn p(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Runs the script of [`reading`] and asserts that what was offloaded is all there, readable and
/// out of reach.
async fn assert_readable(agent: &Arc<Agent>, owner: &Owner, folder: &str, case: &str) {
    let mut session = agent.session_of(owner.clone(), session("s"));
    let report = session
        .run(text("Go."), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Completed, "{case}: {report:?}");
    let lines = agent
        .place()
        .sessions(owner)
        .read(session.id())
        .await
        .unwrap();
    let results = results(&lines);
    let told = |id: &str| results.iter().find(|(of, ..)| of == id).unwrap().2.clone();
    let file = format!("{folder}/call_1.txt");
    let whole = long_text();
    let head: String = whole
        .lines()
        .take(20)
        .map(|line| format!("{line}\n"))
        .collect();
    let tail: String = whole
        .lines()
        .skip(9_980)
        .map(|line| format!("{line}\n"))
        .collect();
    let want = format!(
        "[The output has {bytes} bytes in 10000 lines. All of it is in {file}; read_file with offset=20 goes on where the \
         beginning stops, grep_files with that path searches it.]\n{head}[… {between} bytes …]\n{tail}",
        bytes = whole.len(),
        between = whole.len() - head.len() - tail.len(),
    );
    assert_eq!(told("call_1"), want, "{case}");
    assert!(
        told("read").contains("  5000  row 05000 needle-5000"),
        "{case}: {}",
        told("read")
    );
    assert_eq!(
        told("grep"),
        format!("{file}:7777: row 07777 needle-7777"),
        "{case}"
    );
    let refused = results
        .iter()
        .filter(|(_, status, _)| *status == ResultStatus::Denied)
        .count();
    assert_eq!(refused, 2, "{case}: {results:?}");
    let files = agent.place().files(owner, session.id(), None);
    assert!(
        files.read(&p(&file), ReadRange::ALL).await.unwrap().0 == whole.as_bytes(),
        "{case}"
    );
}

#[test]
fn a_long_result_is_a_file_on_every_place() {
    block_on(async {
        let folder = "agents/main/offload/s";
        let script = reading(folder);
        let user = Owner {
            user: UserId::new("a/b").unwrap(),
            ..Owner::default()
        };
        for scope in [
            IsolationScope::Session,
            IsolationScope::User,
            IsolationScope::Agent,
            IsolationScope::Global,
        ] {
            for owner in [Owner::default(), user.clone()] {
                let dir = template();
                let local = Arc::new(in_folder(dir.path(), scope));
                let agent = agent_at(dir.path(), local.clone(), &script).await;
                assert_readable(
                    &agent,
                    &owner,
                    folder,
                    &format!("folder, {scope:?}, {owner:?}"),
                )
                .await;

                let dir = template();
                let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
                let stored = Arc::new(in_store(&store, dir.path(), "main", "n", scope));
                let agent = agent_at(dir.path(), stored, &script).await;
                assert_readable(
                    &agent,
                    &owner,
                    folder,
                    &format!("store, {scope:?}, {owner:?}"),
                )
                .await;
            }
        }
        let dir = template();
        let inner = Arc::new(in_folder(dir.path(), IsolationScope::User));
        let place = EphemeralPlace::new(inner, stead_core::AgentId::main(), Redactor::default());
        let place = Arc::new(place.with_offload(p("agents/main/offload")));
        let agent = agent_at(dir.path(), place, &script).await;
        assert_readable(
            &agent,
            &Owner::default(),
            folder,
            "a session that is not kept",
        )
        .await;
        assert!(
            !dir.path().join("agents/main/offload").exists(),
            "a session that is not kept leaves nothing"
        );
    });
}

#[test]
fn what_is_long_is_readable_and_not_writable_in_every_layout() {
    let whole: String = (1..=20_000)
        .map(|n| format!("row {n:05} needle-{n}\n"))
        .collect();
    let layouts = [
        Layout::Stead,
        Layout::Openpaw,
        Layout::Deepagents,
        Layout::AgentscopePy,
        Layout::Openharness,
    ];
    block_on(async {
        for layout in layouts {
            let dir = tempfile::tempdir().unwrap();
            for ScaffoldFile { path, content } in scaffold(layout) {
                std::fs::create_dir_all(dir.path().join(path).parent().unwrap()).unwrap();
                std::fs::write(dir.path().join(path), content).unwrap();
            }
            let options = OpenOptions {
                layout: Some(layout),
                model_use: ModelUse::NotNeeded,
                ..OpenOptions::default()
            };
            let opened = open_folder(dir.path(), options.clone(), &|_| None).await;
            let workspace = opened.unwrap();
            let runtime = workspace.definition.paths.runtime.clone();
            let id = workspace.config().agent_id();
            let folder = offload_folder(&runtime, &id).unwrap().join("s").unwrap();
            let settings = PlaceSettings {
                runtime,
                ..PlaceSettings::local(dir.path(), id)
            };
            let place = LocalPlace::open(&settings, Arc::new(OsDisk), Redactor::default()).unwrap();
            let place: Arc<dyn Place> = Arc::new(place);
            let tree = place.files(&Owner::default(), &session("s"), None);
            let guarded = stead_vfs::Guarded::new(tree, workspace.rules.clone());
            let agent = builder(dir.path(), scripted("- text: Done."))
                .open_options(options)
                .place(place)
                .disable(FeatureSwitch::Shell)
                .build()
                .await;
            let mut session = agent.unwrap().session(session("s"));
            let report = session
                .run(text(&whole), RunOptions::default())
                .await
                .unwrap();
            let file = folder.join(&format!("input-{}.md", report.run)).unwrap();
            assert!(
                guarded.read(&file, ReadRange::ALL).await.unwrap().0 == whole.as_bytes(),
                "{layout}"
            );
            let listed: Vec<String> = guarded
                .list(&folder)
                .await
                .unwrap()
                .into_iter()
                .map(|e| e.name)
                .collect();
            assert_eq!(listed, [file.name()], "{layout}");
            let pattern = "needle-12345$".to_owned();
            let root = folder.clone();
            let mode = GrepMode::Content {
                before: 0,
                after: 0,
            };
            let glob = None;
            let file_type = None;
            let syntax = Syntax::Regex;
            let case = Case::Sensitive;
            let query = GrepQuery {
                pattern,
                syntax,
                case,
                root,
                glob,
                file_type,
                mode,
            };
            let found = guarded
                .search()
                .grep(query, Bounds::new(10, Default::default()))
                .await
                .unwrap();
            let paths: Vec<&str> = found.files.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(paths, [file.as_str()], "{layout}");
            assert!(
                guarded.write(&file, "x".into(), Expect::Any).await.is_err(),
                "{layout}"
            );
            assert!(guarded.remove(&folder).await.is_err(), "{layout}");
        }
    });
}

#[test]
fn what_is_short_bounded_or_switched_off_stays_as_it_is() {
    let whole = long_text();
    let script = "- calls: [{tool: big, args: {}}, {tool: small, args: {}}, {tool: read_file, args: {file_path: big.txt, \
                  limit: 9999}}]\n- text: Done.";
    block_on(async {
        for off in [true, false] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("big.txt"), &whole).unwrap();
            if off {
                std::fs::write(dir.path().join("agent.yaml"), "disable: [offload]\n").unwrap();
            }
            let tools = vec![gives("big", text(&whole)), gives("small", text("small"))];
            let agent = agent_on(dir.path(), scripted(script), Arc::new(OsDisk), tools).await;
            agent
                .session(session("s"))
                .run(text("Go."), RunOptions::default())
                .await
                .unwrap();
            let (lines, _) = journal(&agent, &session("s")).await;
            let mut told = results(&lines);
            told.sort_by_key(|(_, _, text)| text.len());
            assert_eq!(told[0].2, "small");
            let read = told
                .iter()
                .find(|(_, _, text)| text.starts_with("     1  row 00001"))
                .unwrap();
            assert!(read.2.len() > 50_000, "a bounded read is never offloaded");
            assert_eq!(told.iter().any(|(_, _, text)| *text == whole), off);
            assert_eq!(dir.path().join("agents/main/offload").exists(), !off);
        }
    });
}

/// A model with a window of this size.
#[derive(Debug)]
struct Small {
    inner: Arc<dyn Model>,
    facts: ModelFacts,
}

impl Model for Small {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        self.inner.stream(request)
    }
}

#[test]
fn small_windows_shrink_what_may_be_told() {
    let rows: String = (0..600).map(|n| format!("row {n}\n")).collect(); // about 1,500 tokens
    let script = "- calls: [{tool: big, args: {}}]\n- text: Done.";
    block_on(async {
        for (window, is_offloaded) in [(4_000, true), (8_000, false)] {
            let dir = tempfile::tempdir().unwrap();
            let inner = scripted(script);
            let facts = ModelFacts {
                context_window: Some(window),
                ..inner.facts().clone()
            };
            let model = Arc::new(Small { inner, facts });
            let agent = agent_on(
                dir.path(),
                model,
                Arc::new(OsDisk),
                vec![gives("big", text(&rows))],
            )
            .await;
            agent
                .session(session("s"))
                .run(text("Go."), RunOptions::default())
                .await
                .unwrap();
            let (lines, _) = journal(&agent, &session("s")).await;
            let told = &results(&lines)[0].2;
            assert_eq!(
                told.contains("All of it is in"),
                is_offloaded,
                "{window}: {told}"
            );
        }
    });
}

#[test]
fn a_long_message_is_a_file_with_all_its_texts_and_keeps_its_media() {
    let whole: String = (1..=20_000)
        .map(|n| format!("row {n:05} needle-{n}\n"))
        .collect();
    let image = Block::Media(Media::inline(
        "image/png",
        "iVBORw0KGgo=",
        Some("a.png".into()),
    ));
    let input = vec![
        Block::text("Please sort this:"),
        image,
        Block::text(whole.clone()),
    ];
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let agent = agent(dir.path(), scripted("- text: Done.")).await;
        let mut session = agent.session(session("s"));
        let report = session.run(input, RunOptions::default()).await.unwrap();
        let file = format!("agents/main/offload/s/input-{}.md", report.run);
        let kept = format!("Please sort this:\n\n{whole}");
        assert_eq!(
            std::fs::read_to_string(dir.path().join(&file)).unwrap(),
            kept
        );
        let (lines, state) = journal(&agent, session.id()).await;
        let Entry::User(said) = &lines[1].entry else {
            panic!("{:?}", lines[1])
        };
        let told = blocks(&said.content);
        assert!(
            told.starts_with("Please sort this:\n\nrow 00001 needle-1\n"),
            "{told}"
        );
        let note = format!(
            "The message has {} bytes in 20002 lines. All of it is in {file}; read_file with",
            kept.len()
        );
        assert!(
            told.contains(&note) && told.ends_with("row 20000 needle-20000\n"),
            "{told}"
        );
        let [Block::Text { .. }, Block::Media(media)] = said.content.as_slice() else {
            panic!("{said:?}")
        };
        assert!(media.data.is_empty() && media.file.is_some());
        assert!(
            state.title.starts_with("Please sort this: row 00001"),
            "{}",
            state.title
        );
    });
}

#[test]
fn beyond_the_quota_nothing_is_written_and_the_model_is_told() {
    let whole = "x".repeat(700_000);
    let image = Media::inline(
        "image/png",
        BASE64_STANDARD.encode(vec![7; 600_000]),
        Some("a.png".into()),
    );
    let script =
        "- calls: [{tool: first, args: {}}]\n- calls: [{tool: second, args: {}}]\n- text: Done.";
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("agent.yaml"), "offload: {max_mb: 1}\n").unwrap();
        let second = vec![Block::text(whole.clone()), Block::Media(image)];
        let tools = vec![gives("first", text(&whole)), gives("second", second)];
        let agent = agent_on(
            dir.path(),
            scripted(script),
            Arc::new(OsDisk),
            tools.clone(),
        )
        .await;
        agent
            .session(session("s"))
            .run(text("Go."), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let told = results(&lines);
        assert!(
            told[0].2.contains("All of it is in agents/main/offload/s/"),
            "{}",
            told[0].2
        );
        let why = "the files of this session have reached 1 MB (offload.max_mb)";
        let note = format!(
            "[The output has 700000 bytes in 1 line. Only its ends are shown: {why}.]\nxxx"
        );
        assert!(told[1].2.starts_with(&note), "{}", told[1].2);
        assert!(
            told[1]
                .2
                .contains(&format!("[image/png a.png: left out: {why}]")),
            "{}",
            told[1].2
        );
        let files = std::fs::read_dir(dir.path().join("agents/main/offload/s"))
            .unwrap()
            .count();
        assert_eq!(files, 1);
        // A second run counts what is there.
        let script = format!("{script}\n- calls: [{{tool: first, args: {{}}}}]\n- text: Again.");
        let agent = agent_on(dir.path(), scripted(&script), Arc::new(OsDisk), tools).await;
        agent
            .session(session("s"))
            .run(text("More."), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        assert!(results(&lines)[2].2.starts_with(&note));
    });
}

#[test]
fn what_cannot_be_written_stays_if_it_is_not_too_long() {
    let script = "- calls: [{tool: big, args: {}}]\n- text: Done.";
    block_on(async {
        for (bytes, stays) in [(900_000, true), (1_100_000, false)] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(dir.path().join("agents/main")).unwrap();
            std::fs::write(dir.path().join("agents/main/offload"), "a file in the way").unwrap();
            let whole = "x".repeat(bytes);
            let agent = agent_on(
                dir.path(),
                scripted(script),
                Arc::new(OsDisk),
                vec![gives("big", text(&whole))],
            )
            .await;
            let report = agent
                .session(session("s"))
                .run(text("Go."), RunOptions::default())
                .await
                .unwrap();
            assert_eq!(report.outcome, RunOutcome::Completed);
            let (lines, _) = journal(&agent, &session("s")).await;
            let told = &results(&lines)[0].2;
            assert_eq!(*told == whole, stays, "{bytes}: {}", &told[..200]);
            if !stays {
                assert!(
                    told.contains("Only its ends are shown: it could not be written: "),
                    "{}",
                    &told[..300]
                );
            }
        }
    });
}

#[test]
fn an_image_is_kept_once_and_sent_as_if_it_were_in_the_journal() {
    // 1 × 1 pixel.
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let image = || Block::Media(Media::inline("image/png", png, Some("dot.png".into())));
    for wire in FakeWire::ALL {
        let bodies = ["", "disable: [offload]\n"].map(|settings| {
            let server = FakeModel::start_with(|request| {
                let turns = &request.seen.as_ref().unwrap().turns;
                match turns
                    .iter()
                    .filter(|turn| matches!(turn, RequestTurn::Assistant { .. }))
                    .count()
                {
                    0 => reply().call("shot", json!({})),
                    _ => reply().text("done"),
                }
            });
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
            block_on(async {
                let tools = vec![gives("shot", vec![Block::text("a dot"), image(), image()])];
                let live = agent_on(
                    dir.path(),
                    model(&server, wire),
                    Arc::new(OsDisk),
                    tools.clone(),
                )
                .await;
                let input = vec![Block::text("Look."), image()];
                live.session(session("s"))
                    .run(input, RunOptions::default())
                    .await
                    .unwrap();
                // Another process, which knows only the journal.
                let other =
                    agent_on(dir.path(), model(&server, wire), Arc::new(OsDisk), tools).await;
                other
                    .session(session("s"))
                    .run(text("And now?"), RunOptions::default())
                    .await
                    .unwrap();
                if settings.is_empty() {
                    let media = dir.path().join("agents/main/offload/s/media");
                    let names: Vec<_> = std::fs::read_dir(media)
                        .unwrap()
                        .flatten()
                        .map(|e| e.file_name())
                        .collect();
                    assert_eq!(names.len(), 1, "{names:?}");
                    let log = dir.path().join("agents/main/sessions/s.log.jsonl");
                    let log = std::fs::read_to_string(log).unwrap();
                    assert!(
                        !log.contains(png) && log.matches("\"tokens\":258").count() == 3,
                        "{log}"
                    );
                }
            });
            assert_eq!(server.rejections(), Vec::new(), "{wire:?}");
            server
                .requests()
                .into_iter()
                .map(|request| request.json.to_string())
                .collect::<Vec<_>>()
        });
        assert_eq!(bodies[0].len(), 3);
        assert!(bodies[0].iter().all(|body| body.contains(png)), "{wire:?}");
        // The session's place is named in neither, and the date is the same.
        assert_eq!(bodies[0], bodies[1], "{wire:?}");
    }
}

#[test]
fn a_fork_has_files_of_its_own_and_a_removed_session_leaves_none() {
    let script = reading("agents/main/offload/s");
    let image = Block::Media(Media::inline("image/png", "iVBORw0KGgo=", None));
    block_on(async {
        for scope in [IsolationScope::User, IsolationScope::Session] {
            let dir = template();
            let place = Arc::new(in_folder(dir.path(), scope));
            let agent = agent_at(dir.path(), place.clone(), &script).await;
            let owner = Owner::default();
            let mut first = agent.session(session("s"));
            first
                .run(
                    vec![Block::text("Go."), image.clone()],
                    RunOptions::default(),
                )
                .await
                .unwrap();
            let fork = first.fork(session("f"), None).await.unwrap();
            agent.sessions().remove(first.id()).await.unwrap();
            agent
                .collector(&owner)
                .forget_session(first.id())
                .await
                .unwrap();
            agent.sessions().flush().await;
            let gone = place
                .files(&owner, first.id(), None)
                .stat(&p("agents/main/offload/s"))
                .await;
            assert!(gone.is_err(), "{scope:?}");
            let (lines, _) = journal(&agent, fork.id()).await;
            let told = &results(&lines)[0].2;
            assert!(
                told.contains("All of it is in agents/main/offload/f/call_1.txt;"),
                "{scope:?}: {told}"
            );
            let files = place.files(&owner, fork.id(), None);
            let kept = files
                .read(&p("agents/main/offload/f/call_1.txt"), ReadRange::ALL)
                .await
                .unwrap()
                .0;
            assert!(kept == long_text().as_bytes(), "{scope:?}");
            let Entry::User(said) = &lines[1].entry else {
                panic!("{:?}", lines[1])
            };
            let Block::Media(media) = &said.content[1] else {
                panic!("{said:?}")
            };
            let file = media.file.as_deref().unwrap();
            assert!(file.starts_with("agents/main/offload/f/media/"), "{file}");
            assert_eq!(
                files.read(&p(file), ReadRange::ALL).await.unwrap().0,
                &b"\x89PNG\r\n\x1a\n"[..]
            );
        }
    });
}

#[test]
fn files_of_sessions_that_are_gone_are_collected_and_a_rewind_leaves_them() {
    let script = reading("agents/main/offload/s");
    block_on(async {
        let dir = template();
        let place = Arc::new(in_folder(dir.path(), IsolationScope::User));
        let agent = agent_at(dir.path(), place, &script).await;
        let mut kept = agent.session(session("s"));
        kept.run(text("Go."), RunOptions::default()).await.unwrap();
        kept.rewind(1, LockWait::No).await.unwrap();
        let orphan = dir.path().join("agents/main/offload/gone/media");
        std::fs::create_dir_all(&orphan).unwrap();
        std::fs::write(orphan.join("a.png"), "12345").unwrap();
        for really in [ApplyMode::DryRun, ApplyMode::Apply] {
            let collected = agent
                .collector(&Owner::default())
                .collect(really)
                .await
                .unwrap();
            assert_eq!(
                (collected.offloads, collected.offloaded_bytes),
                (1, 5),
                "{really:?}"
            );
            assert_eq!(orphan.exists(), really == ApplyMode::DryRun);
        }
        assert!(dir.path().join("agents/main/offload/s/call_1.txt").exists());
        let again = agent
            .collector(&Owner::default())
            .collect(ApplyMode::Apply)
            .await
            .unwrap();
        assert_eq!((again.offloads, again.offloaded_bytes), (0, 0));
    });
}

#[test]
fn undo_knows_nothing_of_offloaded_files() {
    block_on(async {
        let dir = template();
        let place = Arc::new(in_folder(dir.path(), IsolationScope::User));
        let agent = agent_at(
            dir.path(),
            place,
            "- calls: [{tool: big, args: {}}]\n- text: Done.",
        )
        .await;
        let report = agent
            .session(session("s"))
            .run(text("Go."), RunOptions::default())
            .await
            .unwrap();
        let log = agent.place().changes(&Owner::default());
        let runs = log.runs().await.unwrap();
        assert!(runs.iter().all(|run| run.key.run != report.run), "{runs:?}");
    });
}

#[test]
fn no_secret_reaches_an_offloaded_file() {
    block_on(async {
        let dir = template();
        let secret = "sk-very-secret";
        let redactor = Redactor::new([secret.to_owned()]);
        let place = local_place(dir.path(), Arc::new(OsDisk), redactor).await;
        let said = format!("{} {secret} {}", "a ".repeat(50_000), "b ".repeat(50_000));
        let model = scripted("- calls: [{tool: big, args: {}, id: c1}]\n- text: Done.");
        let agent = builder(dir.path(), model)
            .place(place)
            .disable(FeatureSwitch::Shell)
            .tool(gives("big", text(&said)))
            .build()
            .await
            .unwrap();
        agent
            .session(session("s"))
            .run(text("Go."), RunOptions::default())
            .await
            .unwrap();
        let file =
            std::fs::read_to_string(dir.path().join("agents/main/offload/s/c1.txt")).unwrap();
        assert_eq!(file, said.replace(secret, "[redacted]"));
    });
}

#[test]
fn a_rule_that_keeps_the_folder_from_being_read_keeps_results_whole() {
    let whole = long_text();
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let rules = "permissions: [{operations: [read], paths: [agents], mode: deny}]\n";
        std::fs::write(dir.path().join("agent.yaml"), rules).unwrap();
        let script = "- calls: [{tool: big, args: {}}]\n- text: Done.";
        let agent = agent_on(
            dir.path(),
            scripted(script),
            Arc::new(OsDisk),
            vec![gives("big", text(&whole))],
        )
        .await;
        agent
            .session(session("s"))
            .run(text("Go."), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        assert_eq!(results(&lines)[0].2, whole);
    });
}

#[test]
fn switching_offloading_off_affects_only_later_results() {
    let whole = "x".repeat(200_000);
    let script = "- calls: [{tool: first, args: {}}]\n- text: One.\n- calls: [{tool: first, args: {}}]\n- text: Two.\n";
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = scripted(script);
        let tools = vec![gives("first", text(&whole))];
        for settings in ["", "disable: [offload]\n"] {
            std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
            let disk = Arc::new(OsDisk);
            let agent = agent_on(dir.path(), model.clone(), disk, tools.clone()).await;
            agent
                .session(session("s"))
                .run(text("Go."), RunOptions::default())
                .await
                .unwrap();
            let (lines, _) = journal(&agent, &session("s")).await;
            let results = results(&lines);
            assert!(
                results[0]
                    .2
                    .contains("All of it is in agents/main/offload/s/")
            );
            if let Some(second) = results.get(1) {
                assert_eq!(second.2, whole);
            }
            assert_eq!(results.len(), if settings.is_empty() { 1 } else { 2 });
        }
    });
}
