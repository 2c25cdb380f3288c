//! The commands of `stead chat` that start with a slash.
//!
//! Effects: none.

use super::custom_commands::CustomCommand;
use super::state::{ChatCommand, Looked, PlanModeSwitch, UndoStage};
use crate::cli::args::{mode, raise};
use stead::tools::closest_name;
use stead::workspace::QueueMode;

/// A command a person can type.
pub(super) struct SlashCommand {
    pub(super) name: &'static str,
    pub(super) argument: &'static str,
    pub(super) help: &'static str,
}

/// All commands, in the order of `/help`.
pub(super) const SLASH_COMMANDS: [SlashCommand; 24] = [
    SlashCommand {
        name: "/help",
        argument: "",
        help: "what there is",
    },
    SlashCommand {
        name: "/new",
        argument: "",
        help: "start a new session",
    },
    SlashCommand {
        name: "/clear",
        argument: "",
        help: "the same: a new session with an empty context",
    },
    SlashCommand {
        name: "/status",
        argument: "",
        help: "session, model, tokens, cost, journal",
    },
    SlashCommand {
        name: "/model",
        argument: "NAME",
        help: "show the model, or use another from now on",
    },
    SlashCommand {
        name: "/sessions",
        argument: "[ID]",
        help: "choose a session from a list, or switch to one",
    },
    SlashCommand {
        name: "/rewind",
        argument: "[N]",
        help: "list the turns, or return to the point before turn N",
    },
    SlashCommand {
        name: "/resume",
        argument: "",
        help: "resume a run that was interrupted or parked",
    },
    SlashCommand {
        name: "/raise",
        argument: "AMOUNT",
        help: "resume a run that used up its budget: 0.50 or 50000t",
    },
    SlashCommand {
        name: "/mode",
        argument: "[MODE]",
        help: "show the permission mode, or change it for this session",
    },
    SlashCommand {
        name: "/agent",
        argument: "[NAME]",
        help: "list the agents, or switch to one",
    },
    SlashCommand {
        name: "/queue",
        argument: "[MODE]",
        help: "show how messages during a run are handled, or change it",
    },
    SlashCommand {
        name: "/plan",
        argument: "[off]",
        help: "plan mode: only reading, until you agree to a plan",
    },
    SlashCommand {
        name: "/compact",
        argument: "[FOCUS]",
        help: "compact the context; FOCUS is what the summary must keep",
    },
    SlashCommand {
        name: "/pin",
        argument: "[N]",
        help: "pin the input of turn N, so that it stays word for word; without N, the newest",
    },
    SlashCommand {
        name: "/unpin",
        argument: "N",
        help: "unpin the input of turn N",
    },
    SlashCommand {
        name: "/diff",
        argument: "",
        help: "what the runs of this session have changed in files",
    },
    SlashCommand {
        name: "/undo",
        argument: "[yes]",
        help: "show what undoing the newest run would do; `/undo yes` does it",
    },
    SlashCommand {
        name: "/usage",
        argument: "",
        help: "tokens and money of this session, and of all today",
    },
    SlashCommand {
        name: "/memory",
        argument: "",
        help: "what long-term memory has and what waits",
    },
    SlashCommand {
        name: "/skills",
        argument: "",
        help: "list the skills",
    },
    SlashCommand {
        name: "/approvals",
        argument: "",
        help: "list the questions that wait, in all sessions",
    },
    SlashCommand {
        name: "/mcp",
        argument: "",
        help: "list the tool servers that the workspace names",
    },
    SlashCommand {
        name: "/quit",
        argument: "",
        help: "leave",
    },
];

/// A parsed input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedInput {
    /// Not a command: a message for the agent.
    Input,
    Help,
    Status,
    /// Shows or changes how messages during a run are handled.
    Queue(Option<QueueMode>),
    /// A command that the application executes.
    Run(ChatCommand),
    /// An unknown command, or one with a wrong argument.
    Invalid(String),
}

/// Parses an input. Only a first word like `/name` is a command; `/etc/passwd` is not.
pub(super) fn parse_input(input: &str) -> ParsedInput {
    let text = input.trim();
    if let Some(line) = text.strip_prefix('!').map(str::trim)
        && !line.is_empty()
    {
        return ParsedInput::Run(ChatCommand::OwnCommand(line.to_owned()));
    }
    let (name, argument) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    if !name
        .strip_prefix('/')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_of_name))
    {
        return ParsedInput::Input;
    }
    let argument = Some(argument.trim()).filter(|argument| !argument.is_empty());
    match (name, argument) {
        ("/help", None) => ParsedInput::Help,
        ("/status", None) => ParsedInput::Status,
        ("/diff", None) => ParsedInput::Run(ChatCommand::Look(Looked::Changes)),
        ("/usage", None) => ParsedInput::Run(ChatCommand::Look(Looked::Usage)),
        ("/memory", None) => ParsedInput::Run(ChatCommand::Look(Looked::Memory)),
        ("/skills", None) => ParsedInput::Run(ChatCommand::Look(Looked::Skills)),
        ("/approvals", None) => ParsedInput::Run(ChatCommand::Look(Looked::Approvals)),
        ("/mcp", None) => ParsedInput::Run(ChatCommand::Look(Looked::Servers)),
        ("/undo", None) => ParsedInput::Run(ChatCommand::Undo(UndoStage::Shown)),
        ("/undo", Some("yes")) => ParsedInput::Run(ChatCommand::Undo(UndoStage::Confirmed)),
        ("/undo", Some(other)) => {
            ParsedInput::Invalid(format!("/undo takes nothing or `yes`, not {other:?}"))
        }
        ("/new" | "/clear", None) => ParsedInput::Run(ChatCommand::New),
        ("/resume", None) => ParsedInput::Run(ChatCommand::Resume),
        ("/quit" | "/exit", None) => ParsedInput::Run(ChatCommand::Quit),
        ("/raise", None) => ParsedInput::Invalid(
            "/raise takes an amount: 0.50 is dollars, 50000t tokens".to_owned(),
        ),
        ("/raise", Some(amount)) => match raise(amount) {
            Ok(amount) => ParsedInput::Run(ChatCommand::Raise(amount)),
            Err(why) => ParsedInput::Invalid(format!("/raise: {why}")),
        },
        ("/model", argument) => ParsedInput::Run(ChatCommand::Model(argument.map(str::to_owned))),
        ("/sessions", argument) => {
            ParsedInput::Run(ChatCommand::Sessions(argument.map(str::to_owned)))
        }
        ("/compact", focus) => ParsedInput::Run(ChatCommand::Compact(focus.map(str::to_owned))),
        ("/mode", None) => ParsedInput::Run(ChatCommand::Mode(None)),
        ("/mode", Some(name)) => match mode(name) {
            Ok(mode) => ParsedInput::Run(ChatCommand::Mode(Some(mode))),
            Err(why) => ParsedInput::Invalid(format!("/mode: {why}")),
        },
        ("/agent", name) => ParsedInput::Run(ChatCommand::Agent(name.map(str::to_owned))),
        ("/queue", None) => ParsedInput::Queue(None),
        ("/queue", Some(name)) => match name.parse() {
            Ok(mode) => ParsedInput::Queue(Some(mode)),
            Err(why) => ParsedInput::Invalid(format!("/queue: {why}")),
        },
        ("/plan", None | Some("on")) => ParsedInput::Run(ChatCommand::Plan(PlanModeSwitch::On)),
        ("/plan", Some("off")) => ParsedInput::Run(ChatCommand::Plan(PlanModeSwitch::Off)),
        ("/plan", Some(other)) => {
            ParsedInput::Invalid(format!("/plan takes nothing or `off`, not {other:?}"))
        }
        ("/pin", None) => ParsedInput::Run(ChatCommand::Pin(None)),
        ("/unpin", None) => {
            ParsedInput::Invalid("/unpin takes the number of a turn; /rewind lists them".to_owned())
        }
        ("/pin" | "/unpin", Some(turn)) => match turn.parse() {
            Ok(turn) if name == "/pin" => ParsedInput::Run(ChatCommand::Pin(Some(turn))),
            Ok(turn) => ParsedInput::Run(ChatCommand::Unpin(turn)),
            Err(_) => ParsedInput::Invalid(format!(
                "{name} takes the number of a turn, not {turn:?}; /rewind lists them"
            )),
        },
        ("/rewind", None) => ParsedInput::Run(ChatCommand::Rewind(None)),
        ("/rewind", Some(turn)) => match turn.parse() {
            Ok(turn) => ParsedInput::Run(ChatCommand::Rewind(Some(turn))),
            Err(_) => ParsedInput::Invalid(format!(
                "/rewind takes the number of a turn, not {turn:?}; /rewind lists them"
            )),
        },
        (name, Some(_)) if SLASH_COMMANDS.iter().any(|slash| slash.name == name) => {
            ParsedInput::Invalid(format!("{name} takes no argument"))
        }
        (name, _) => ParsedInput::Invalid(unknown(name)),
    }
}

/// Whether a command can have this character. Paths have others.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':')
}

/// Whether the chat itself has this command.
pub(super) fn is_command(name: &str) -> bool {
    name == "/exit" || SLASH_COMMANDS.iter().any(|slash| slash.name == name)
}

fn unknown(name: &str) -> String {
    let names: Vec<&str> = SLASH_COMMANDS.iter().map(|slash| slash.name).collect();
    match closest_name(name, &names) {
        Some(near) => format!("there is no {name}; did you mean {near}?"),
        None => format!("there is no {name}; /help lists the commands"),
    }
}

/// Returns the list of commands and keys.
pub(super) fn help(custom: &[CustomCommand]) -> String {
    let mut text = String::new();
    for SlashCommand {
        name,
        argument,
        help,
    } in &SLASH_COMMANDS
    {
        text.push_str(&format!("{:<18} {help}\n", format!("{name} {argument}")));
    }
    for command in custom {
        let head = format!("{} {}", command.name, command.argument);
        text.push_str(&format!(
            "{head:<18} {} ({})\n",
            command.description, command.path
        ));
    }
    text + KEYS
}

const KEYS: &str = "\
@path              attach a file of the workspace
!command           run a command yourself; the agent sees its output with your next message
Enter              send; during a run: as /queue says
Alt-Enter, Ctrl-J  new line (also Shift-Enter where the terminal supports it)
Tab                complete commands and paths
Up, Down           earlier inputs
Ctrl-R             search them
Ctrl-G, Ctrl-X Ctrl-E  write in $EDITOR
Shift-Tab          change the permission mode: default, accept_edits, explore
PgUp, PgDn         scroll
Ctrl-O             show or hide the details of a tool call
Ctrl-Up, Ctrl-Down choose the call
Esc                stop the run; what was said stays
Ctrl-C             the same; again: leave
Ctrl-D             leave";

#[cfg(test)]
mod tests {
    use super::*;
    use stead::core::{PermissionMode, SpendAmount};

    #[test]
    fn inputs_are_told_from_commands_and_mistakes_are_answered_with_the_nearest() {
        let wrong = |text: &str| ParsedInput::Invalid(text.to_owned());
        let cases = [
            ("hello /help", ParsedInput::Input),
            (
                "! ls -l | wc",
                ParsedInput::Run(ChatCommand::OwnCommand("ls -l | wc".into())),
            ),
            ("!", ParsedInput::Input),
            ("wow !ls", ParsedInput::Input),
            ("/etc/passwd is what?", ParsedInput::Input),
            ("/", ParsedInput::Input),
            (" /help ", ParsedInput::Help),
            ("/status", ParsedInput::Status),
            (
                "/model  a:b",
                ParsedInput::Run(ChatCommand::Model(Some("a:b".into()))),
            ),
            ("/model", ParsedInput::Run(ChatCommand::Model(None))),
            ("/rewind 2", ParsedInput::Run(ChatCommand::Rewind(Some(2)))),
            ("/exit", ParsedInput::Run(ChatCommand::Quit)),
            (
                "/rewind x",
                wrong("/rewind takes the number of a turn, not \"x\"; /rewind lists them"),
            ),
            (
                "/raise 50000t",
                ParsedInput::Run(ChatCommand::Raise(SpendAmount {
                    tokens: 50_000,
                    ..SpendAmount::default()
                })),
            ),
            (
                "/raise lots",
                wrong("/raise: \"lots\" is not an amount: write dollars as 0.50, tokens as 50000t"),
            ),
            ("/mode", ParsedInput::Run(ChatCommand::Mode(None))),
            (
                "/mode explore",
                ParsedInput::Run(ChatCommand::Mode(Some(PermissionMode::Explore))),
            ),
            (
                "/mode wild",
                wrong(
                    "/mode: \"wild\" is no permission mode; they are: default, accept_edits, explore, dont_ask, bypass",
                ),
            ),
            ("/agent", ParsedInput::Run(ChatCommand::Agent(None))),
            (
                "/agent build",
                ParsedInput::Run(ChatCommand::Agent(Some("build".into()))),
            ),
            ("/queue", ParsedInput::Queue(None)),
            (
                "/queue steer-backlog",
                ParsedInput::Queue(Some(QueueMode::SteerBacklog)),
            ),
            (
                "/queue later",
                wrong(
                    "/queue: \"later\" is no mode of the queue; they are: collect, followup, steer, steer-backlog, interrupt",
                ),
            ),
            (
                "/plan",
                ParsedInput::Run(ChatCommand::Plan(PlanModeSwitch::On)),
            ),
            (
                "/plan off",
                ParsedInput::Run(ChatCommand::Plan(PlanModeSwitch::Off)),
            ),
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
            assert_eq!(parse_input(input), want, "{input:?}");
        }
    }
}
