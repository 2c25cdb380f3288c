//! The place for tests of when sessions are looked through: what waits, for how long, and together
//! with what.

use super::{Obedient, curated, hasty, of_days, say, work};
use crate::support::{block_on, builder, session, text};
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use stead_agent::{Agent, Clock, RunOptions};
use stead_core::{Block, Owner, TenantId};
use stead_model::{Delta, Model, ModelError, ModelFacts, Request};
use stead_workspace::FeatureSwitch;

/// About how many tokens must wait.
const ENOUGH_TOKENS: u32 = 1_000;

/// An agent by the clock of a test.
struct Day {
    agent: Arc<Agent>,
    minute: Arc<AtomicI64>,
}

impl Day {
    async fn begin(dir: &Path, model: Arc<dyn Model>) -> Self {
        let minute = Arc::new(AtomicI64::new(0));
        let passed = minute.clone();
        let begun = Timestamp::now();
        let clock = Clock::new(move || {
            let minutes = passed.load(Ordering::Relaxed).unsigned_abs();
            begun
                .checked_add(Duration::from_secs(minutes * 60))
                .unwrap()
        });
        let agent = builder(dir, model)
            .clock(clock)
            .disable(FeatureSwitch::Shell)
            .configure(|config| {
                config.memory.flush_tokens = ENOUGH_TOKENS;
                config.timezone = Some("UTC".to_owned());
            })
            .build()
            .await
            .unwrap();
        Self { agent, minute }
    }

    fn wait(&self, minutes: i64) {
        self.minute.fetch_add(minutes, Ordering::Relaxed);
    }

    async fn is_due(&self) -> bool {
        let memory = self.agent.memory();
        memory.is_work_due(&TenantId::default()).await.unwrap()
    }
}

/// The questions about sessions, without those about merging.
fn about_sessions(model: &Obedient) -> Vec<String> {
    let asked = model.questions().into_iter();
    asked.filter(|text| !text.contains("New facts:")).collect()
}

fn long(fact: &str) -> String {
    format!("fact: {fact}\n{}", "and so on and on. ".repeat(400))
}

#[test]
fn idle_sessions_are_looked_through_together_once_enough_is_new() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let day = Day::begin(dir.path(), model.clone()).await;
        for (name, fact) in [("a", "fact: one"), ("b", "fact: two"), ("a", "fact: three")] {
            say(&day.agent, name, fact).await;
        }
        day.wait(31);
        work(&day.agent).await;
        assert_eq!(model.questions(), Vec::<String>::new(), "too little");
        say(&day.agent, "c", &long("four")).await;
        work(&day.agent).await;
        day.wait(29);
        assert!(!day.is_due().await, "c is not idle");
        let status = day.agent.memory().status(&Owner::default()).await.unwrap();
        let waiting: Vec<&str> = status.waiting.iter().map(|one| &*one.session).collect();
        assert_eq!(waiting, ["a", "b", "c"]);
        assert!(status.waiting_tokens >= u64::from(ENOUGH_TOKENS));
        assert!(status.due_at.is_some() && status.flush_tokens == u64::from(ENOUGH_TOKENS));
        day.wait(1);
        assert!(day.is_due().await);
        work(&day.agent).await;
        let asked = about_sessions(&model);
        assert_eq!(asked.len(), 1, "{asked:?}");
        assert!(asked[0].contains("Conversation 3:"), "{}", asked[0]);
        let mut found = of_days(&day.agent, &Owner::default()).await;
        found.sort();
        assert_eq!(found, ["four", "one", "three", "two"]);
        // Each fact has the session and the entry that it is from.
        let facts = day.agent.memory().list(&Owner::default()).await.unwrap();
        let source = |text: &str| {
            let fact = facts.iter().find(|fact| fact.text == text).unwrap();
            let noted = |key| fact.sources[0].get(key).unwrap().to_owned();
            (noted("session"), noted("seq"))
        };
        assert_eq!(source("one"), ("a".into(), "2".into()));
        assert_eq!(source("two"), ("b".into(), "2".into()));
        assert_eq!(source("four"), ("c".into(), "2".into()));
        assert_eq!(curated(&day.agent, &Owner::default()).await.len(), 4);
        let status = day.agent.memory().status(&Owner::default()).await.unwrap();
        assert_eq!((status.waiting, status.unmerged), (Vec::new(), 0));
        assert!(!day.is_due().await);
        let before = model.questions().len();
        day.wait(3 * 24 * 60);
        work(&day.agent).await;
        assert_eq!(model.questions().len(), before, "nothing is new");
    });
}

#[test]
fn little_waits_for_a_day_at_most_and_a_session_that_ended_need_not_be_idle() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let day = Day::begin(dir.path(), model.clone()).await;
        say(&day.agent, "a", "fact: one").await;
        day.wait(24 * 60 - 1);
        assert!(!day.is_due().await);
        day.wait(1);
        work(&day.agent).await;
        assert_eq!(about_sessions(&model).len(), 1);
        let mut chat = day.agent.session(session("chat"));
        let input = text(&long("two"));
        chat.run(input, RunOptions::default()).await.unwrap();
        assert!(!day.is_due().await);
        chat.finish("exit").await.unwrap();
        assert!(day.is_due().await);
        work(&day.agent).await;
        assert_eq!(of_days(&day.agent, &Owner::default()).await, ["one", "two"]);
    });
}

#[test]
fn a_failure_is_told_and_tried_again_later() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let day = Day::begin(dir.path(), model.clone()).await;
        say(&day.agent, "a", &long("one")).await;
        day.wait(30);
        *model.before.lock().unwrap() =
            Some(Box::new(|_| Err(ModelError::Config("no luck".to_owned()))));
        let tenant = TenantId::default();
        let memory = day.agent.memory();
        let worked = memory.work(&tenant, &hasty()).await.unwrap();
        assert_eq!((worked.done, worked.failed), (0, 1));
        let status = memory.status(&Owner::default()).await.unwrap();
        let waiting = &status.waiting[0];
        assert_eq!(waiting.failures, 1);
        assert!(waiting.error.as_ref().unwrap().contains("no luck"));
        *model.before.lock().unwrap() = None;
        day.wait(1);
        let worked = memory.work(&tenant, &hasty()).await.unwrap();
        assert_eq!((worked.done, worked.failed), (2, 0), "a flush and a merge");
        assert_eq!(curated(&day.agent, &Owner::default()).await, ["one"]);
    });
}

/// A model that never answers a conversation.
#[derive(Debug)]
struct Mute(Arc<Obedient>);

impl Model for Mute {
    fn facts(&self) -> &ModelFacts {
        self.0.facts()
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        match request.messages[0]
            .text()
            .contains("fact: said before the kill")
            && !request.messages[0].text().starts_with('[')
        {
            true => Box::pin(futures_util::stream::pending()),
            false => self.0.stream(request),
        }
    }
}

#[test]
fn what_a_killed_run_left_is_looked_through_too() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::quiet();
        let day = Day::begin(dir.path(), Arc::new(Mute(model.clone()))).await;
        let words = "fact: said before the kill";
        let mut killed = day.agent.session(session("killed"));
        let run = killed.run(text(words), RunOptions::default());
        // Dropping the run is what a kill is to the notes: its end is never noted.
        assert!(
            tokio::time::timeout(Duration::from_millis(300), run)
                .await
                .is_err()
        );
        drop(killed);
        let tenant = TenantId::default();
        let work = || async {
            let memory = day.agent.memory();
            let worked = memory.work_exclusively(&tenant, &hasty()).await.unwrap();
            worked.unwrap().done
        };
        assert_eq!(work().await, 0, "it may go on");
        // The time of the last entry is that of the machine.
        day.wait(60);
        assert_eq!(work().await, 0, "noted, and too little");
        let status = day.agent.memory().status(&Owner::default()).await.unwrap();
        assert_eq!(status.waiting.len(), 1, "{status:?}");
        day.wait(24 * 60);
        assert_eq!(work().await, 2);
        let found = of_days(&day.agent, &Owner::default()).await;
        assert_eq!(found, ["said before the kill"]);
        assert_eq!(work().await, 0);
    });
}

#[test]
fn what_is_about_to_be_summarised_is_looked_through_without_waiting() {
    block_on(async {
        let dir = tempfile::tempdir().unwrap();
        let model = Obedient::new(|_| vec![Block::text("ok")]);
        let day = Day::begin(dir.path(), model.clone()).await;
        for part in ["one", "two", "three"] {
            say(&day.agent, "s", &long(part)).await;
        }
        assert!(!day.is_due().await);
        let mut chat = day.agent.session(session("s"));
        chat.load().await.unwrap();
        let compacted = chat.compact(None, RunOptions::default()).await.unwrap();
        assert!(compacted.is_some());
        assert!(day.is_due().await);
        work(&day.agent).await;
        let found = of_days(&day.agent, &Owner::default()).await;
        assert_eq!(found, ["one", "two", "three"]);
    });
}
