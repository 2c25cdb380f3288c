//! The commands that begin with a slash.

use super::state::{Command, Planning};
use crate::cli::args::{mode, raise};
use stead::tools::nearest;
use stead::workspace::QueueMode;

/// A command a person can type.
pub(super) struct Slash {
    pub(super) name: &'static str,
    pub(super) argument: &'static str,
    pub(super) help: &'static str,
}

/// All of them, as `/help` lists them.
pub(super) const SLASHES: [Slash; 16] = [
    Slash {
        name: "/help",
        argument: "",
        help: "what there is",
    },
    Slash {
        name: "/new",
        argument: "",
        help: "begin a new session",
    },
    Slash {
        name: "/status",
        argument: "",
        help: "session, model, tokens, cost, journal",
    },
    Slash {
        name: "/model",
        argument: "NAME",
        help: "ask another model from now on",
    },
    Slash {
        name: "/sessions",
        argument: "[ID]",
        help: "list the sessions, or go to one",
    },
    Slash {
        name: "/rewind",
        argument: "[N]",
        help: "list the turns, or continue before turn N",
    },
    Slash {
        name: "/resume",
        argument: "",
        help: "go on with a run that was interrupted or parked",
    },
    Slash {
        name: "/raise",
        argument: "AMOUNT",
        help: "the same for one that used up its budget: 0.50 or 50000t",
    },
    Slash {
        name: "/mode",
        argument: "[MODE]",
        help: "how freely the agent may act, or another mode for this session",
    },
    Slash {
        name: "/agent",
        argument: "[NAME]",
        help: "list the agents, or let another go on",
    },
    Slash {
        name: "/queue",
        argument: "[MODE]",
        help: "how what you say during a run is handled, or another way",
    },
    Slash {
        name: "/plan",
        argument: "[off]",
        help: "plan mode: only reading, until you agree to a plan",
    },
    Slash {
        name: "/compact",
        argument: "[FOCUS]",
        help: "make the context smaller, keeping FOCUS above all",
    },
    Slash {
        name: "/pin",
        argument: "[N]",
        help: "keep the input of turn N word for word; without N, the newest",
    },
    Slash {
        name: "/unpin",
        argument: "N",
        help: "pin it no longer",
    },
    Slash {
        name: "/quit",
        argument: "",
        help: "leave",
    },
];

/// What was typed, understood.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// Not a command: to be said to the agent.
    Input,
    Help,
    Status,
    /// Shows or changes how what is said during a run is handled.
    Queue(Option<QueueMode>),
    /// Something the application does.
    Do(Command),
    /// A command nobody knows, or one that needs something else.
    Wrong(String),
}

/// Reads an input. Only a first word like `/name` is a command; `/etc/passwd` is not.
pub(super) fn parse(input: &str) -> Typed {
    let text = input.trim();
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !name
        .strip_prefix('/')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(char::is_alphabetic))
    {
        return Typed::Input;
    }
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    match (name, argument) {
        ("/help", None) => Typed::Help,
        ("/status", None) => Typed::Status,
        ("/new", None) => Typed::Do(Command::New),
        ("/resume", None) => Typed::Do(Command::Resume),
        ("/quit" | "/exit", None) => Typed::Do(Command::Quit),
        ("/raise", None) => {
            Typed::Wrong("/raise takes an amount: 0.50 is dollars, 50000t tokens".to_owned())
        }
        ("/raise", Some(amount)) => match raise(amount) {
            Ok(amount) => Typed::Do(Command::Raise(amount)),
            Err(why) => Typed::Wrong(format!("/raise: {why}")),
        },
        ("/model", argument) => Typed::Do(Command::Model(argument.map(str::to_owned))),
        ("/sessions", argument) => Typed::Do(Command::Sessions(argument.map(str::to_owned))),
        ("/compact", focus) => Typed::Do(Command::Compact(focus.map(str::to_owned))),
        ("/mode", None) => Typed::Do(Command::Mode(None)),
        ("/mode", Some(name)) => match mode(name) {
            Ok(mode) => Typed::Do(Command::Mode(Some(mode))),
            Err(why) => Typed::Wrong(format!("/mode: {why}")),
        },
        ("/agent", name) => Typed::Do(Command::Agent(name.map(str::to_owned))),
        ("/queue", None) => Typed::Queue(None),
        ("/queue", Some(name)) => match name.parse() {
            Ok(mode) => Typed::Queue(Some(mode)),
            Err(why) => Typed::Wrong(format!("/queue: {why}")),
        },
        ("/plan", None | Some("on")) => Typed::Do(Command::Plan(Planning::On)),
        ("/plan", Some("off")) => Typed::Do(Command::Plan(Planning::Off)),
        ("/plan", Some(other)) => {
            Typed::Wrong(format!("/plan takes nothing or `off`, not {other:?}"))
        }
        ("/pin", None) => Typed::Do(Command::Pin(None)),
        ("/unpin", None) => {
            Typed::Wrong("/unpin takes the number of a turn; /rewind lists them".to_owned())
        }
        ("/pin" | "/unpin", Some(turn)) => match turn.parse() {
            Ok(turn) if name == "/pin" => Typed::Do(Command::Pin(Some(turn))),
            Ok(turn) => Typed::Do(Command::Unpin(turn)),
            Err(_) => Typed::Wrong(format!(
                "{name} takes the number of a turn, not {turn:?}; /rewind lists them"
            )),
        },
        ("/rewind", None) => Typed::Do(Command::Rewind(None)),
        ("/rewind", Some(turn)) => match turn.parse() {
            Ok(turn) => Typed::Do(Command::Rewind(Some(turn))),
            Err(_) => Typed::Wrong(format!(
                "/rewind takes the number of a turn, not {turn:?}; /rewind lists them"
            )),
        },
        (name, Some(_)) if SLASHES.iter().any(|slash| slash.name == name) => {
            Typed::Wrong(format!("{name} takes no argument"))
        }
        (name, _) => Typed::Wrong(unknown(name)),
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = SLASHES.iter().map(|slash| slash.name).collect();
    match nearest(name, &names) {
        Some(near) => format!("there is no {name}; did you mean {near}?"),
        None => format!("there is no {name}; /help lists the commands"),
    }
}

/// The list of commands and keys.
pub(super) fn help() -> String {
    let mut text = String::new();
    for Slash {
        name,
        argument,
        help,
    } in &SLASHES
    {
        text.push_str(&format!("{:<18} {help}\n", format!("{name} {argument}")));
    }
    text + KEYS
}

const KEYS: &str = "\
@path              attach a file of the workspace
Enter              send; while a run goes on: as /queue says
Alt-Enter, Ctrl-J  new line (also Shift-Enter where the terminal tells it apart)
Tab                complete commands and paths
Up, Down           earlier inputs
PgUp, PgDn         scroll
Ctrl-O             show or hide the details of a tool call
Ctrl-Up, Ctrl-Down choose the call
Ctrl-C             cancel the run; again: leave
Ctrl-D             leave";

#[cfg(test)]
mod tests {
    use super::*;
    use stead::core::{Allowance, PermissionMode};

    #[test]
    fn inputs_are_told_from_commands_and_mistakes_are_answered_with_the_nearest() {
        let wrong = |text: &str| Typed::Wrong(text.to_owned());
        let cases = [
            ("hello /help", Typed::Input),
            ("/etc/passwd is what?", Typed::Input),
            ("/", Typed::Input),
            (" /help ", Typed::Help),
            ("/status", Typed::Status),
            ("/model  a:b", Typed::Do(Command::Model(Some("a:b".into())))),
            ("/model", Typed::Do(Command::Model(None))),
            ("/rewind 2", Typed::Do(Command::Rewind(Some(2)))),
            ("/exit", Typed::Do(Command::Quit)),
            (
                "/rewind x",
                wrong("/rewind takes the number of a turn, not \"x\"; /rewind lists them"),
            ),
            (
                "/raise 50000t",
                Typed::Do(Command::Raise(Allowance {
                    tokens: 50_000,
                    ..Allowance::default()
                })),
            ),
            (
                "/raise lots",
                wrong(
                    "/raise: \"lots\" is no amount: dollars are written as 0.50, tokens as 50000t",
                ),
            ),
            ("/mode", Typed::Do(Command::Mode(None))),
            (
                "/mode explore",
                Typed::Do(Command::Mode(Some(PermissionMode::Explore))),
            ),
            (
                "/mode wild",
                wrong(
                    "/mode: \"wild\" is no permission mode; they are: default, accept_edits, explore, dont_ask, bypass",
                ),
            ),
            ("/agent", Typed::Do(Command::Agent(None))),
            (
                "/agent build",
                Typed::Do(Command::Agent(Some("build".into()))),
            ),
            ("/queue", Typed::Queue(None)),
            (
                "/queue steer-backlog",
                Typed::Queue(Some(QueueMode::SteerBacklog)),
            ),
            (
                "/queue later",
                wrong(
                    "/queue: \"later\" is no mode of the queue; they are: collect, followup, steer, steer-backlog, interrupt",
                ),
            ),
            ("/plan", Typed::Do(Command::Plan(Planning::On))),
            ("/plan off", Typed::Do(Command::Plan(Planning::Off))),
            ("/plan 2", wrong("/plan takes nothing or `off`, not \"2\"")),
            ("/new now", wrong("/new takes no argument")),
            (
                "/stauts",
                wrong("there is no /stauts; did you mean /status?"),
            ),
            (
                "/zzzzz",
                wrong("there is no /zzzzz; /help lists the commands"),
            ),
        ];
        for (input, want) in cases {
            assert_eq!(parse(input), want, "{input:?}");
        }
    }
}
