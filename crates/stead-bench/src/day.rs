//! Counting the model calls of a day of use, by purpose, for `bench/`.
//!
//! The day has one-shot runs and chats, some of which go on after a pause. The clock is set, so that
//! a day takes a moment. After each run, work of memory that is due is done, as the command line does.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (writes), the store (writes), the journal (writes), hooks, tools, the model, the network.

use anyhow::Context;
use futures_util::stream::{self, BoxStream, StreamExt};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use stead::agent::{
    Agent, Clock, RunOptions, UsageGrouping, UsagePeriod, WorkerOptions, usage_report,
};
use stead::core::{Block, Message, SessionId, StopReason, Usage};
use stead::model::{Delta, Model, ModelError, ModelFacts, Reply, Request};
use stead::workspace::FlushAfter;

/// The words of one kilobyte of conversation.
const WORDS: &str = "we looked at the parser and the way it reads a line of settings ";

/// What happens: the minute of the day, the session, and the length of the answer in words. A new
/// session begins with each new name; a chat ends with its last turn.
const DAY: [(i64, &str, usize); 34] = [
    (0, "run1", 60),
    (4, "run2", 300),
    (11, "chat1", 200),
    (14, "chat1", 350),
    (19, "chat1", 120),
    (25, "chat1", 500),
    (33, "chat1", 90),
    (52, "run3", 40),
    (53, "run4", 40),
    (80, "run5", 700),
    (95, "run6", 150),
    (118, "chat2", 400),
    (121, "chat2", 260),
    (126, "chat2", 310),
    (130, "chat2", 180),
    (160, "run7", 90),
    (175, "run8", 1_200),
    (230, "run9", 80),
    (232, "run10", 60),
    (234, "run11", 70),
    (260, "chat1", 240),
    (266, "chat1", 410),
    (300, "run12", 500),
    (320, "chat3", 150),
    (323, "chat3", 220),
    (331, "chat3", 640),
    (340, "chat3", 130),
    (351, "chat3", 90),
    (380, "run13", 330),
    (400, "run14", 45),
    (420, "run15", 900),
    (450, "run16", 120),
    (470, "run17", 75),
    (475, "run18", 60),
];

/// A model that answers at once: so many words to an input that names a number, a fact if it is
/// asked for facts, and the new facts as they are if it is asked to merge.
#[derive(Debug)]
struct DayModel;

fn answer(request: &Request) -> String {
    let system: String = request.system.iter().map(|part| &*part.text).collect();
    let newest = request.messages.last().map(|message| message.text());
    let newest = newest.unwrap_or_default();
    if system.starts_with("You keep the long-term memory of an agent in order") {
        return "{\"bullets\": [], \"dropped\": []}".to_owned();
    }
    if system.starts_with("You keep the long-term memory of an agent") {
        let number = newest.split(['[', ']']).nth(1).unwrap_or("0");
        return format!("[{{\"fact\": \"decision {number}\", \"seqs\": [{number}]}}]");
    }
    let words = newest.split_whitespace().last();
    let words: usize = words.and_then(|text| text.parse().ok()).unwrap_or(1);
    WORDS
        .split_whitespace()
        .cycle()
        .take(words)
        .collect::<Vec<_>>()
        .join(" ")
}

impl Model for DayModel {
    fn facts(&self) -> &ModelFacts {
        static FACTS: ModelFacts = ModelFacts::unknown(Cow::Borrowed("bench:day"));
        &FACTS
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let text = answer(request);
        let tokens = |text: &str| text.len() as u64 / 4;
        let system = request.system.iter().map(|part| tokens(&part.text));
        let said = request
            .messages
            .iter()
            .map(|one: &Arc<Message>| tokens(&one.text()));
        let usage = Usage {
            input_tokens: system.chain(said).sum(),
            output_tokens: tokens(&text),
            ..Usage::default()
        };
        let reply = Reply {
            content: vec![Block::text(text)],
            usage,
            stop: StopReason::EndTurn,
            model: self.name().to_owned(),
        };
        stream::iter([Ok(Delta::Done(Box::new(reply)))]).boxed()
    }
}

/// Lives through the day, and returns the calls and the tokens by purpose.
pub(crate) async fn measure(workdir: &Path, after: FlushAfter) -> anyhow::Result<Value> {
    let begun = Timestamp::now();
    let minute = Arc::new(AtomicI64::new(0));
    let now = minute.clone();
    let clock = Clock::new(move || {
        let passed = minutes_long(now.load(Ordering::Relaxed));
        begun.checked_add(passed).unwrap_or(begun)
    });
    let agent = Agent::builder()
        .workspace(workdir)
        .model_of(DayModel)
        .clock(clock)
        .configure(move |config| config.memory.flush_after = Some(after))
        .build()
        .await?;
    for (at, (due, name, words)) in DAY.iter().enumerate() {
        minute.store(*due, Ordering::Relaxed);
        let mut session = agent.session(SessionId::new(name)?);
        let input = vec![Block::text(format!("Tell me about part {at} in {words}"))];
        session.run(input, RunOptions::default()).await?;
        let is_last_of_chat = DAY
            .get(at + 1)
            .is_none_or(|(_, next, _)| next != name && name.starts_with("chat"));
        if is_last_of_chat {
            session.finish("exit").await?;
        }
        do_due_work(&agent).await?;
    }
    // The first run of the next day.
    minute.store(24 * 60, Ordering::Relaxed);
    do_due_work(&agent).await?;
    let status = agent.memory().status(agent.owner()).await?;
    let log = agent.usage(agent.owner());
    let logged = log.read().await?;
    let (rows, _) = usage_report(
        &logged.records,
        UsageGrouping::Purpose,
        UsagePeriod::default(),
        |at| log.date(at),
    );
    let row = |purpose: &str| {
        let row = rows.iter().find(|row| row.key == purpose);
        row.map_or(json!({"calls": 0, "input": 0, "output": 0}), |row| {
            json!({"calls": row.calls, "input": row.usage.input_tokens, "output": row.usage.output_tokens})
        })
    };
    let by_purpose: BTreeMap<&str, Value> = ["answer", "memory", "compaction"]
        .map(|purpose| (purpose, row(purpose)))
        .into();
    Ok(json!({"inputs": DAY.len(), "purposes": by_purpose, "waiting": status.waiting.len()}))
}

fn minutes_long(minutes: i64) -> Duration {
    Duration::from_secs(minutes.unsigned_abs() * 60)
}

/// Does what is due, as a background process does.
async fn do_due_work(agent: &Arc<Agent>) -> anyhow::Result<()> {
    let tenant = &agent.owner().tenant;
    let memory = agent.memory();
    if memory.is_work_due(tenant).await? {
        let options = WorkerOptions::with_limit(Duration::from_secs(60));
        let worked = memory.work(tenant, &options).await?;
        anyhow::ensure!(worked.failed == 0, "memory work failed: {worked:?}");
    }
    memory
        .status(agent.owner())
        .await
        .context("the status of memory")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_day_needs_a_side_call_for_each_run_before_and_few_now() {
        let mut side_calls = Vec::new();
        for after in [FlushAfter::Run, FlushAfter::Idle] {
            let dir = tempfile::tempdir().unwrap();
            std::fs::write(dir.path().join("AGENTS.md"), "You help.").unwrap();
            let day = measure(dir.path(), after).await.unwrap();
            let calls = |purpose: &str| day["purposes"][purpose]["calls"].as_u64().unwrap();
            assert_eq!(calls("answer"), DAY.len() as u64, "{day}");
            side_calls.push(calls("memory"));
        }
        let each = DAY.len() as u64;
        assert!(
            side_calls[0] >= each && side_calls[1] * 4 <= each,
            "{side_calls:?}"
        );
    }
}
