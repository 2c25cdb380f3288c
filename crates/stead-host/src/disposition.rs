//! What becomes of a command: a pure decision by the command and what the session does now.
//!
//! Effects: none.

use stead_agent::IncomingMessage;
use stead_core::{
    AnswerCommand, AnswerPolicy, Command, InputCommand, InputId, Pinned, QueueMode, RunId,
};

/// What the session does when a command arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionPhase {
    Idle,
    /// This process runs it.
    Running,
}

/// What becomes of a command that is a row of the inbox.
#[derive(Debug, PartialEq)]
pub(crate) enum Disposition {
    /// It waits in the message queue, from which the run takes it, or the next one.
    Enqueue(IncomingMessage),
    /// It reaches the run that is going on.
    AnswerRun(AnswerCommand),
    /// It stops the run that is going on, if that is the named one or none is named.
    CancelRun(Option<RunId>),
    /// Inputs that wait are taken back.
    Withdraw(Vec<InputId>),
    /// It waits until the session is idle.
    WaitForIdle(Command),
}

/// Decides what becomes of the command in the row `id`.
pub(crate) fn disposition(id: &InputId, command: Command, phase: SessionPhase) -> Disposition {
    match (command, phase) {
        (Command::Input(input), _) if is_plain(&input) => Disposition::Enqueue(IncomingMessage {
            content: input.content,
            origin: Some(input.origin),
            rows: vec![id.clone()],
            mode: input.mode,
        }),
        (Command::Steer { content, origin }, _) => Disposition::Enqueue(IncomingMessage {
            content,
            origin: Some(origin),
            rows: vec![id.clone()],
            mode: Some(QueueMode::Steer),
        }),
        (Command::Withdraw { inputs }, _) => Disposition::Withdraw(inputs),
        (Command::Answer(answer), SessionPhase::Running) => Disposition::AnswerRun(answer),
        (Command::Cancel { run, .. }, SessionPhase::Running) => Disposition::CancelRun(run),
        (
            other @ (Command::Input(_)
            | Command::Answer(_)
            | Command::Cancel { .. }
            | Command::Set { .. }
            | Command::Pin { .. }
            | Command::Compact { .. }
            | Command::Rewind { .. }
            | Command::Fork { .. }
            | Command::Undo { .. }
            | Command::Resume { .. }
            | Command::Wake),
            SessionPhase::Idle | SessionPhase::Running,
        ) => Disposition::WaitForIdle(other),
    }
}

/// Whether an input has no options of its own and may be joined with others.
fn is_plain(input: &InputCommand) -> bool {
    input.changes.is_empty()
        && input.pinned == Pinned::No
        && input.answers == AnswerPolicy::Ask
        && input.output_schema.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{Block, Origin};

    #[test]
    fn messages_answers_and_cancellations_reach_a_run_and_the_rest_waits() {
        let id = InputId::fresh();
        let message = |mode| {
            Disposition::Enqueue(IncomingMessage {
                content: vec![Block::text("a")],
                origin: Some(Origin::default()),
                rows: vec![id.clone()],
                mode,
            })
        };
        let input = InputCommand::new(vec![Block::text("a")]);
        let pinned = Command::Input(InputCommand {
            pinned: Pinned::Yes,
            ..input.clone()
        });
        let steer = Command::Steer {
            content: vec![Block::text("a")],
            origin: Origin::default(),
        };
        let answer = AnswerCommand {
            by: "ann".to_owned(),
            ..AnswerCommand::default()
        };
        let run = Some(RunId::fresh());
        let cancel = Command::Cancel {
            run: run.clone(),
            by: "ann".to_owned(),
        };
        let waits = |command: &Command| Disposition::WaitForIdle(command.clone());
        let answers = Command::Answer(answer.clone());
        let table = [
            (Command::Input(input), message(None), message(None)),
            (pinned.clone(), waits(&pinned), waits(&pinned)),
            (
                steer,
                message(Some(QueueMode::Steer)),
                message(Some(QueueMode::Steer)),
            ),
            (
                answers.clone(),
                waits(&answers),
                Disposition::AnswerRun(answer),
            ),
            (cancel.clone(), waits(&cancel), Disposition::CancelRun(run)),
            (Command::Wake, waits(&Command::Wake), waits(&Command::Wake)),
        ];
        for (command, idle, running) in table {
            let name = format!("{command:?}");
            let decided = disposition(&id, command.clone(), SessionPhase::Idle);
            assert_eq!(decided, idle, "{name} when idle");
            let decided = disposition(&id, command, SessionPhase::Running);
            assert_eq!(decided, running, "{name} during a run");
        }
    }
}
