//! Follows a session from its first entry on, answers its questions, and checks what was seen.

use super::AGENT;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stead_core::{
    AnswerCommand, ApprovalAnswer, ApprovalReply, Block, CallState, Client, Command, Cursor, Entry,
    EventId, JournalLine, Presence, ResultStatus, SessionAddress, SessionEventBody, SessionId,
    SessionState,
};
use stead_host::Host;
use tokio::task::JoinSet;

/// Somebody who follows one session.
pub(crate) struct Follower {
    pub(crate) address: SessionAddress,
    host: Arc<Host>,
    seen: Arc<Mutex<Seen>>,
    /// What was sent and acknowledged here.
    sent: Mutex<Vec<(Command, stead_core::Receipt)>>,
    _reading: JoinSet<()>,
}

/// What was seen of a session.
#[derive(Debug, Default, Clone)]
pub(crate) struct Seen {
    pub(crate) ids: Vec<EventId>,
    pub(crate) lines: Vec<Arc<JournalLine>>,
    pub(crate) live: usize,
}

impl Follower {
    pub(crate) async fn start(host: &Arc<Host>, session: &str) -> Self {
        let id = SessionId::new(session).unwrap();
        let address = host.address(AGENT, id).await.unwrap();
        let mut events = host
            .subscribe(&address, Cursor::Start, Presence::Watches)
            .await
            .unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let writing = seen.clone();
        let (answering, to) = (host.clone(), address.clone());
        let mut reading = JoinSet::new();
        reading.spawn(async move {
            loop {
                let event = events.next().await.unwrap();
                let asked = {
                    let mut seen = writing.lock().unwrap();
                    seen.ids.push(event.id);
                    match event.body {
                        SessionEventBody::Entry(line) => {
                            seen.lines.push(line.clone());
                            match &line.entry {
                                Entry::Ask(ask) => Some((ask.id.clone(), ask.args_hash.clone())),
                                _ => None,
                            }
                        }
                        SessionEventBody::Live(_) => {
                            seen.live += 1;
                            None
                        }
                    }
                };
                if let Some((id, args_hash)) = asked {
                    // It may be answered or superseded by now.
                    let _ = answering.send(&to, yes(id, args_hash), None).await;
                }
            }
        });
        Self {
            address,
            host: host.clone(),
            seen,
            sent: Mutex::default(),
            _reading: reading,
        }
    }

    /// What became of everything that was sent here.
    async fn outcomes(&self) -> String {
        let sent = self.sent.lock().unwrap().clone();
        let mut lines = Vec::new();
        for (command, receipt) in sent {
            let status = self.host.status(&self.address, &receipt.input_id).await;
            lines.push(format!("{command:?}: {receipt:?} is {status:?}"));
        }
        lines.join("\n")
    }

    pub(crate) fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    pub(crate) async fn send(
        &self,
        command: Command,
        key: Option<&str>,
    ) -> Result<stead_core::Receipt, stead_core::ClientError> {
        let receipt = self.host.send(&self.address, command.clone(), key).await?;
        self.sent.lock().unwrap().push((command, receipt.clone()));
        Ok(receipt)
    }

    /// Answers the questions that are open.
    pub(crate) async fn answer(&self, state: &SessionState) {
        let open = state.run.iter().flat_map(|run| run.pending.iter());
        let open: Vec<Command> = open
            .filter_map(|pending| match &pending.state {
                CallState::Asked { args_hash, .. } => {
                    Some(yes(pending.call.id.clone(), args_hash.clone()))
                }
                _ => None,
            })
            .collect();
        for command in open {
            let _ = self.send(command, None).await;
        }
    }

    /// Waits until no run is open, and every text of `expected` is in the journal. Resumes the
    /// session if nothing happens.
    pub(crate) async fn until_quiet(&self, expected: &[String], patience: Duration) -> Seen {
        let begun = tokio::time::Instant::now();
        let mut newest = (0, begun);
        loop {
            let seen = self.seen();
            let state = seen.fold();
            let missing = expected.iter().filter(|text| seen.count(text) == 0);
            let missing: Vec<&String> = missing.collect();
            let is_open = state.run.is_some();
            if missing.is_empty() && !is_open {
                return seen;
            }
            let now = tokio::time::Instant::now();
            if now - begun > patience {
                let outcomes = self.outcomes().await;
                let session = &self.address.session;
                let lines = &seen.lines;
                panic!("{session}: {missing:?} missing, open: {is_open}\n{outcomes}\n{lines:#?}");
            }
            if seen.lines.len() > newest.0 {
                newest = (seen.lines.len(), now);
            } else if is_open && now - newest.1 > Duration::from_millis(1500) {
                self.answer(&state).await;
                let resume = Command::Resume {
                    raise: stead_core::SpendAmount::default(),
                    answers: stead_core::AnswerPolicy::Ask,
                    changes: Vec::new(),
                };
                let _ = self.send(resume, None).await;
                newest.1 = now;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

fn yes(id: String, args_hash: String) -> Command {
    Command::Answer(AnswerCommand {
        replies: vec![ApprovalReply {
            id,
            args_hash,
            answer: ApprovalAnswer::Yes,
        }],
        by: "ann".into(),
        ..AnswerCommand::default()
    })
}

impl Seen {
    /// Folds the entries. Panics if one does not fit.
    pub(crate) fn fold(&self) -> SessionState {
        let mut state = SessionState::default();
        for line in &self.lines {
            state.apply(line.seq, &line.entry).unwrap();
        }
        state
    }

    /// How often a text is in the messages of people.
    pub(crate) fn count(&self, text: &str) -> usize {
        self.messages().map(|said| said.matches(text).count()).sum()
    }

    fn messages(&self) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|line| match &line.entry {
            Entry::User(input) => Some(joined(&input.content)),
            Entry::Steer(steer) => Some(joined(&steer.content)),
            _ => None,
        })
    }

    /// Checks that there is no gap, that ids only grow, that each inbox row is recorded once, that
    /// each call has one result, and that no mark was left twice.
    pub(crate) fn check(&self, marks: &[String]) {
        let numbers: Vec<u64> = self.lines.iter().map(|line| line.seq).collect();
        let all: Vec<u64> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, all);
        assert!(self.ids.is_sorted_by(|a, b| a < b), "{:?}", self.ids);
        let mut rows = BTreeMap::new();
        let mut results: BTreeMap<&str, Vec<ResultStatus>> = BTreeMap::new();
        for line in &self.lines {
            let inputs = match &line.entry {
                Entry::User(input) => &input.inbox_rows[..],
                Entry::Steer(steer) => &steer.inbox_rows[..],
                Entry::Result(result) => {
                    results.entry(&result.id).or_default().push(result.status);
                    &[]
                }
                _ => &[],
            };
            for row in inputs {
                *rows.entry(row.clone()).or_insert(0) += 1;
            }
        }
        assert!(rows.values().all(|count| *count == 1), "{rows:?}");
        let calls = self.lines.iter().filter_map(|line| match &line.entry {
            Entry::Model(model) => Some(&model.content),
            _ => None,
        });
        for block in calls.flatten() {
            let Block::ToolCall(call) = block else {
                continue;
            };
            let result = results.remove(call.id.as_str()).unwrap_or_default();
            assert_eq!(result.len(), 1, "{}: {result:?}", call.id);
            let mark = call.args["mark"].as_str().unwrap();
            let left = marks.iter().filter(|line| *line == mark).count();
            let expected = match result[0] {
                ResultStatus::Ok => 1..=1,
                ResultStatus::Interrupted | ResultStatus::Cancelled => 0..=1,
                ResultStatus::Error | ResultStatus::Denied | ResultStatus::Skipped => 0..=0,
            };
            assert!(expected.contains(&left), "{mark}: {left} times, {result:?}");
        }
        assert!(results.is_empty(), "{results:?}");
    }
}

fn joined(blocks: &[Block]) -> String {
    let texts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
