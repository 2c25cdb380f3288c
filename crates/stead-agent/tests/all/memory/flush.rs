//! The place for tests of extracting facts from sessions: timing, marks, chunks, failing models,
//! owners and volume.

use super::{
    Obedient, agent, agent_at, agent_of, curated, hasty, of_days, read, say, say_as, texts, work,
};
use crate::support::{block_on, session};
use crate::tenants::{in_folder, in_store};
use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_core::{Block, Owner, TenantId, UserId, text_tokens};
use stead_model::ModelError;
use stead_place::{IsolationScope, Place};
use stead_store::{DocVersion, MemoryStore, OsDisk, Store};
use stead_testkit::servers::{ServerKind, shared};

#[test]
fn the_reply_is_there_before_anything_is_looked_through() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let agent = agent(dir.path(), model.clone()).await;
        assert_eq!(
            say(&agent, "s", "fact: prefers tabs, key sk-secret-1")
                .await
                .text,
            "ok"
        );
        assert_eq!(
            (model.questions(), remembered_files(dir.path())),
            (Vec::new(), 0)
        );
        work(&agent).await;
        assert_eq!(
            of_days(&agent, &Owner::default()).await,
            ["prefers tabs, key [redacted]"]
        );
        assert_eq!(
            curated(&agent, &Owner::default()).await,
            ["prefers tabs, key [redacted]"]
        );
        let fact = agent
            .memory()
            .list(&Owner::default())
            .await
            .unwrap()
            .remove(0);
        let noted = |key: &str| fact.sources[0].get(key).unwrap().to_owned();
        assert_eq!(
            (noted("session"), noted("seq"), noted("by")),
            ("s".into(), "2".into(), "user".into())
        );
    });
}

fn remembered_files(dir: &std::path::Path) -> usize {
    usize::from(dir.join("MEMORY.md").exists()) + usize::from(dir.join("memory").exists())
}

#[test]
fn only_what_came_after_the_mark_is_shown_and_what_was_rewound_is_not() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let agent = agent(dir.path(), model.clone()).await;
        say(&agent, "s", "fact: one").await;
        work(&agent).await;
        say(&agent, "s", "fact: two").await;
        let mut again = agent.session(session("s"));
        again.load().await.unwrap();
        again.rewind(2, stead_store::LockWait::No).await.unwrap();
        say(&agent, "s", "fact: three").await;
        work(&agent).await;
        assert_eq!(of_days(&agent, &Owner::default()).await, ["one", "three"]);
        let asked = model.questions();
        let about = asked
            .iter()
            .filter(|question| question.starts_with('['))
            .collect::<Vec<_>>();
        assert!(
            !about[1].contains("one") && !about[1].contains("two"),
            "{about:?}"
        );
        // A fork repeats nothing of what it copied, and another session of the same name is
        // another.
        let fork = again.fork(session("f"), None).await.unwrap();
        drop(fork);
        say(&agent, "f", "fact: four").await;
        work(&agent).await;
        agent.sessions().remove(&session("s")).await.unwrap();
        say(&agent, "s", "fact: five").await;
        say(&agent, "s", "fact: six").await;
        work(&agent).await;
        assert_eq!(
            of_days(&agent, &Owner::default()).await,
            ["one", "three", "four", "five", "six"]
        );
    });
}

#[test]
fn nothing_is_looked_through_where_it_is_switched_off() {
    block_on(async {
        for off in ["flush", "hooks", "sessions"] {
            let dir = tempfile::tempdir().unwrap();
            let model = Obedient::quiet();
            let agent = agent_of(
                dir.path(),
                model.clone(),
                Arc::new(OsDisk),
                Vec::new(),
                move |config| match off {
                    "flush" => config.memory.flush = Some(false),
                    "hooks" => drop(
                        config
                            .disable
                            .0
                            .insert(stead_workspace::FeatureSwitch::MemoryHooks),
                    ),
                    _ => drop(
                        config
                            .disable
                            .0
                            .insert(stead_workspace::FeatureSwitch::SessionPersistence),
                    ),
                },
            )
            .await;
            say(&agent, "s", "fact: one").await;
            assert_eq!(
                agent
                    .memory()
                    .work(&TenantId::default(), &hasty())
                    .await
                    .unwrap()
                    .done,
                0,
                "{off}"
            );
            assert_eq!(model.questions(), Vec::<String>::new(), "{off}");
        }
    });
}

#[test]
fn a_long_session_is_shown_in_parts_that_take_at_most_half_of_the_window() {
    const WINDOW: u64 = 4_000;
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::of_window(WINDOW, |_| vec![Block::text("ok ".repeat(300))]);
        let agent = agent(dir.path(), model.clone()).await;
        let long = format!("fact: long\n{}", "words upon words. ".repeat(4_000));
        for words in ["fact: a", &long, "fact: b", "fact: c", "fact: d"] {
            say(&agent, "s", words).await;
        }
        work(&agent).await;
        assert_eq!(
            of_days(&agent, &Owner::default()).await,
            ["a", "long", "b", "c", "d"]
        );
        let questions = model.questions();
        assert!(
            questions
                .iter()
                .filter(|question| question.starts_with('['))
                .count()
                >= 2,
            "{questions:?}"
        );
        let longest = questions
            .iter()
            .map(|question| text_tokens(question))
            .max()
            .unwrap();
        assert!(longest <= WINDOW / 2, "{longest} tokens");
    });
}

#[test]
fn a_model_that_fails_is_asked_again_and_given_up_in_the_end_which_is_told() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let agent = agent(dir.path(), model.clone()).await;
        say(&agent, "s", "fact: one").await;
        *model.before.lock().unwrap() =
            Some(Box::new(|_| Err(ModelError::Config("no".to_owned()))));
        for _ in 0..40 {
            work(&agent).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let status = agent.memory().status(&Owner::default()).await.unwrap();
        let dead: Vec<(u32, bool)> = status
            .dead
            .iter()
            .map(|dead| (dead.attempts, dead.reason.contains("no")))
            .collect();
        assert_eq!(
            (dead, model.questions().len()),
            (vec![(8, true)], 8),
            "{status:?}"
        );
        // Nothing is lost: the next job begins where the last one ended.
        *model.before.lock().unwrap() = None;
        say(&agent, "s", "fact: two").await;
        work(&agent).await;
        assert_eq!(of_days(&agent, &Owner::default()).await, ["one", "two"]);
    });
}

fn user(name: &str) -> Owner {
    Owner {
        user: UserId::new(name).unwrap(),
        ..Owner::default()
    }
}

async fn assert_each_user_has_a_memory(dir: &std::path::Path, place: Arc<dyn Place>, what: &str) {
    let model = Obedient::quiet();
    let agent = agent_at(dir, place, model.clone(), Vec::new(), |_| {}).await;
    for round in ["one", "two"] {
        for name in ["ann", "bob/../ann"] {
            say_as(
                &agent,
                &user(name),
                "s",
                &format!("fact: {round} of {}", &name[..3]),
            )
            .await;
            work(&agent).await;
        }
    }
    for name in ["ann", "bob/../ann"] {
        let want = [
            format!("one of {}", &name[..3]),
            format!("two of {}", &name[..3]),
        ];
        assert_eq!(of_days(&agent, &user(name)).await, want, "{what}");
        assert_eq!(curated(&agent, &user(name)).await, want, "{what}");
    }
    assert_eq!(
        of_days(&agent, &Owner::default()).await,
        Vec::<String>::new(),
        "{what}"
    );
    let about = model
        .questions()
        .into_iter()
        .filter(|question| question.starts_with('['))
        .count();
    assert_eq!(about, 4, "{what}");
}

#[test]
fn users_have_marks_and_memories_of_their_own_in_every_place() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        assert_each_user_has_a_memory(
            dir.path(),
            Arc::new(in_folder(dir.path(), IsolationScope::User)),
            "a folder",
        )
        .await;
        let sqlite = stead_store::connect(&format!("sqlite:{}", dir.path().join("a.db").display()))
            .await
            .unwrap();
        let memory: Arc<dyn Store> = Arc::new(MemoryStore::default());
        for (store, what) in [(memory, "memory"), (sqlite, "sqlite")] {
            let dir = tempfile::tempdir().unwrap();
            let place = in_store(&store, dir.path(), "main", "m", IsolationScope::User);
            assert_each_user_has_a_memory(dir.path(), Arc::new(place), what).await;
        }
    });
}

#[test]
fn users_have_marks_and_memories_of_their_own_on_servers() {
    block_on(async {
        for kind in [ServerKind::Redis, ServerKind::Postgres, ServerKind::Mysql] {
            let store = stead_store::connect(&shared(kind)).await.unwrap();
            let namespace = DocVersion::fresh().to_string();
            let dir = tempfile::tempdir().unwrap();
            let place = in_store(&store, dir.path(), "main", &namespace, IsolationScope::User);
            assert_each_user_has_a_memory(dir.path(), Arc::new(place), &format!("{kind:?}")).await;
        }
    });
}

#[test]
fn ten_thousand_facts_are_remembered_each_once_in_bounded_time() {
    const RUNS: usize = 50;
    const EACH: usize = 200;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::of_window(1_000_000, |_| vec![Block::text("ok")]);
        let agent = agent_of(dir.path(), model, Arc::new(OsDisk), Vec::new(), |config| {
            config.memory.consolidate_minutes = 1_000;
        })
        .await;
        let options = stead_agent::WorkerOptions::with_limit(Duration::from_secs(300));
        let started = Instant::now();
        for run in 0..RUNS {
            let words: String = (0..EACH)
                .map(|n| format!("fact: number {run}-{n} of many\n"))
                .collect();
            say(&agent, "s", &words).await;
            agent
                .memory()
                .work(&TenantId::default(), &options)
                .await
                .unwrap();
        }
        agent.memory().consolidate(&Owner::default()).await.unwrap();
        let took = started.elapsed();
        let days = of_days(&agent, &Owner::default()).await;
        assert_eq!(
            (days.len(), days.iter().collect::<HashSet<_>>().len()),
            (RUNS * EACH, RUNS * EACH)
        );
        let date = jiff_today();
        let mut all = texts(&read(
            dir.path(),
            &format!("memory/archive/MEMORY-{}.md", &date[..7]),
        ));
        let kept = texts(&read(dir.path(), "MEMORY.md"));
        assert!(
            kept.last().unwrap().contains("49-199") && kept.len() < 2_000,
            "{}",
            kept.len()
        );
        all.extend(kept);
        assert_eq!(
            (all.len(), all.iter().collect::<HashSet<_>>().len()),
            (RUNS * EACH, RUNS * EACH)
        );
        assert!(took < Duration::from_secs(120), "{took:?}");
    });
}

fn jiff_today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}
