//! The commands that change a session without a run: settings, pins, compaction, rewinding, undo;
//! and those that stop or take back what others began.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (reads), the store (writes), the journal (writes), hooks, tools, the model.

use crate::actor::SessionActor;
use crate::error::is_locked;
use crate::mailbox::not_this_run;
use crate::reply::ReplyTo;
use crate::run_progress::RunProgress;
use std::sync::Arc;
use stead_agent::{AgentError, RunOptions};
use stead_core::{AnswerPolicy, Command, Event, InputId, JournalLine, RunId, SetEntry};
use stead_store::LockWait;

impl SessionActor {
    /// Carries out a command that changes the session without a run. If another process runs the
    /// session, the command waits for it.
    pub(crate) async fn change(&mut self, command: Command, reply: ReplyTo) {
        let changed = self.try_change(command.clone()).await;
        let seq = self.session.state().seq;
        match changed {
            Ok(()) => {
                self.mailbox.shared.feed.journal_changed(seq);
                self.mailbox.acknowledge(reply, seq).await;
            }
            Err(error) if is_locked(&error) => {
                self.mailbox.queue_for_holder(command, reply).await;
            }
            Err(error) => self.mailbox.fail(reply, error).await,
        }
    }

    async fn try_change(&mut self, command: Command) -> Result<(), AgentError> {
        let wait = LockWait::No;
        match command {
            Command::Set { changes, by } => {
                let set = changes.into_iter().map(|change| SetEntry {
                    change,
                    by: by.clone(),
                });
                self.session.set_all(set.collect(), wait).await.map(drop)
            }
            Command::Pin { turn, pinned } => self.session.pin(turn, pinned, wait).await,
            Command::Compact { focus } => self.compact(focus).await,
            Command::Rewind { turn } => self.session.rewind(turn, wait).await.map(drop),
            Command::Fork { to, turn } => self.session.fork(to, turn).await.map(drop),
            Command::Undo { run } => self.session.undo(&run).await.map(drop),
            Command::Input(_)
            | Command::Steer { .. }
            | Command::Answer(_)
            | Command::Withdraw { .. }
            | Command::Cancel { .. }
            | Command::Resume { .. }
            | Command::Wake => Ok(()),
        }
    }

    /// Compacts the context. Commands that arrive meanwhile wait; a cancellation stops it.
    async fn compact(&mut self, focus: Option<String>) -> Result<(), AgentError> {
        let Self { session, mailbox } = self;
        let progress = RunProgress::new(session.id().clone(), mailbox.shared.feed.clone(), None);
        let (on_event, on_entries) = (progress.clone(), progress.clone());
        let options = RunOptions {
            listener: Arc::new(move |event: &Event| on_event.on_event(event)),
            entries: Some(Arc::new(move |epoch, lines: &[JournalLine]| {
                on_entries.on_entries(epoch, lines);
            })),
            ..mailbox.run_options(AnswerPolicy::Ask, Vec::new())
        };
        let cancel = options.cancel.clone();
        let mut compacting = Box::pin(session.compact(focus, options));
        loop {
            let has_clients = mailbox.has_clients();
            tokio::select! {
                biased;
                compacted = &mut compacting => return compacted.map(drop),
                message = mailbox.channel.receiver.recv(), if has_clients => {
                    // None: the last handle was dropped.
                    if let Some(message) = message {
                        mailbox.on_message_during_compaction(message, &cancel).await;
                    }
                }
            }
        }
    }

    /// Takes back inputs that wait, here or in the process that runs the session.
    pub(crate) async fn withdraw(&mut self, inputs: Vec<InputId>, reply: ReplyTo) {
        if self.session.is_busy().await {
            let command = Command::Withdraw { inputs };
            return self.mailbox.queue_for_holder(command, reply).await;
        }
        self.mailbox.withdraw(&inputs).await;
        self.mailbox.acknowledge_done(reply).await;
    }

    /// Cancels the run of another process, or one that a dead process left open.
    pub(crate) async fn cancel(&mut self, named: Option<RunId>, by: String, reply: ReplyTo) {
        let command = Command::Cancel {
            run: named.clone(),
            by,
        };
        if self.session.is_busy().await {
            return self.mailbox.queue_for_holder(command, reply).await;
        }
        let is_interrupted = self.is_interrupted().await;
        let open = self.session.state().run.as_ref().map(|run| &run.id);
        let refusal = match (&named, open) {
            (Some(named), open) if open != Some(named) => Some(not_this_run(named, open)),
            (Some(_) | None, _) if is_interrupted => None,
            (Some(_) | None, _) => Some("no run is going on in this session".to_owned()),
        };
        if let Some(reason) = refusal {
            return self.mailbox.refuse(reply, &reason).await;
        }
        let mut order = self.resumption(AnswerPolicy::Ask, Vec::new());
        order.options.cancel.cancel();
        order.command = Some(command);
        order.reply = reply;
        self.run(order).await;
    }
}
