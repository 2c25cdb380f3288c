//! The decision whether a folder may act: what the person decided before, a flag, or a question.
//!
//! Effects: the clock, the terminal, the local disk (writes).

use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use crate::cli::personal::PersonalFolder;
use crate::cli::print::{err, errln};
use crate::cli::style::Style;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead::workspace::{
    PartChange, RecordedPart, TrustAnswer, TrustDecision, TrustJudge, TrustRecord, TrustRequest,
};

/// The number of times that a question is asked.
const MAX_QUESTIONS: usize = 5;
/// The maximum length of an answer.
const MAX_ANSWER_BYTES: u64 = 1024;

/// What a command does with a folder that acts and that nobody decided about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum UntrustedFolder {
    /// It asks the person at the terminal; without one it does not open the folder.
    #[default]
    Ask,
    /// It opens the folder without the parts that act.
    Restrict,
    /// It does not open the folder.
    Refuse,
}

/// Whether the person trusts folders by a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustFlag {
    Given,
    NotGiven,
}

/// Decides about one folder.
#[derive(Debug)]
pub(crate) struct FolderJudge {
    /// The real path of the folder.
    dir: PathBuf,
    flag: TrustFlag,
    untrusted: UntrustedFolder,
    personal: PersonalFolder,
    terminal: Terminal,
    style: Style,
}

/// Whether there is a person to ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Terminal {
    Present,
    Absent,
}

/// Returns what decides about the folder `dir`.
pub(crate) fn folder_judge(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
) -> Arc<dyn TrustJudge> {
    Arc::new(FolderJudge {
        dir: dir.canonicalize().unwrap_or_else(|_| dir.to_owned()),
        flag: match common.trust {
            true => TrustFlag::Given,
            false => TrustFlag::NotGiven,
        },
        untrusted: common.untrusted,
        personal: PersonalFolder::new(env),
        terminal: match env.stdin_is_terminal && env.stderr_is_terminal {
            true => Terminal::Present,
            false => Terminal::Absent,
        },
        style: Style::stderr(env),
    })
}

impl TrustJudge for FolderJudge {
    fn decide(&self, request: &TrustRequest) -> TrustDecision {
        let known = self.personal.decision(&self.dir).unwrap_or_else(|error| {
            errln!("{error}");
            None
        });
        let covering = known.as_ref().filter(|record| record.covers(request));
        match (covering.map(|record| record.answer), self.flag) {
            (Some(TrustAnswer::Trusted), _) => return TrustDecision::Trusted,
            (Some(TrustAnswer::ReadOnly), TrustFlag::NotGiven) => return TrustDecision::Restricted,
            (Some(TrustAnswer::ReadOnly) | None, TrustFlag::Given) => {
                return self.trust(request);
            }
            (None, TrustFlag::NotGiven) => {}
        }
        match (self.untrusted, &request.fingerprint, self.terminal) {
            (UntrustedFolder::Restrict, _, _) => TrustDecision::Restricted,
            (UntrustedFolder::Ask, Ok(_), Terminal::Present) => self.ask(known.as_ref(), request),
            (UntrustedFolder::Ask | UntrustedFolder::Refuse, Ok(_) | Err(_), _) => {
                TrustDecision::Refused(self.refusal(known.as_ref(), request))
            }
        }
    }
}

impl FolderJudge {
    /// Trusts the folder and remembers it.
    fn trust(&self, request: &TrustRequest) -> TrustDecision {
        let record = TrustRecord::new(self.dir.clone(), TrustAnswer::Trusted, request);
        let Some(record) = record else {
            return TrustDecision::Refused(self.refusal(None, request));
        };
        if let Err(error) = self.personal.store_decision(&record) {
            errln!("the folder is trusted this time only, for this cannot be remembered: {error}");
        }
        TrustDecision::Trusted
    }

    /// Asks the person at the terminal, and remembers the answer.
    fn ask(&self, known: Option<&TrustRecord>, request: &TrustRequest) -> TrustDecision {
        errln!("{}", self.style.bold(&self.heading(known)));
        for line in part_lines(known, request) {
            errln!("{line}");
        }
        errln!(
            "Trust the folder only if you know where it comes from. Read only opens it without \
             these parts, with your own model, in explore mode."
        );
        let mut input = std::io::stdin().lock();
        for _ in 0..MAX_QUESTIONS {
            err(format_args!("Trust it? [y]es, [n]o, read only, [q]uit: "));
            let mut line = String::new();
            let read = std::io::Read::take(&mut input, MAX_ANSWER_BYTES).read_line(&mut line);
            match (read, line.trim().to_lowercase().as_str()) {
                (Ok(0) | Err(_), _) => break,
                (Ok(_), "y" | "yes") => return self.trust(request),
                (Ok(_), "n" | "no" | "r" | "read only" | "read-only") => {
                    return self.restrict(request);
                }
                (Ok(_), "q" | "quit") => break,
                (Ok(_), _) => {}
            }
        }
        TrustDecision::Refused(format!(
            "{} was not opened; nothing of it ran",
            self.dir.display()
        ))
    }

    /// Remembers that the folder is opened for reading alone.
    fn restrict(&self, request: &TrustRequest) -> TrustDecision {
        let record = TrustRecord::new(self.dir.clone(), TrustAnswer::ReadOnly, request);
        if let Some(Err(error)) = record.map(|record| self.personal.store_decision(&record)) {
            errln!("this cannot be remembered: {error}");
        }
        TrustDecision::Restricted
    }

    fn heading(&self, known: Option<&TrustRecord>) -> String {
        let dir = self.dir.display();
        match known {
            None => format!("{dir} is not trusted, and it would act by itself:"),
            Some(record) => format!(
                "{dir} has changed since you decided about it ({:.0}), and it would act by itself:",
                record.at
            ),
        }
    }

    /// Returns the message without a terminal: what acts, and what to do.
    fn refusal(&self, known: Option<&TrustRecord>, request: &TrustRequest) -> String {
        let mut lines = vec![self.heading(known)];
        lines.extend(part_lines(known, request));
        lines.push(match &request.fingerprint {
            Ok(_) => format!(
                "If you know where it comes from, --trust (or `stead trust add {}`) trusts it as it is now",
                self.dir.display()
            ),
            Err(reason) => format!("It cannot be trusted: {reason}"),
        });
        lines.join("\n")
    }
}

/// Returns a line for each part, with what changed since the decision.
fn part_lines(known: Option<&TrustRecord>, request: &TrustRequest) -> Vec<String> {
    match known {
        None => request
            .parts
            .iter()
            .map(|part| part_line("", part))
            .collect(),
        Some(record) => {
            let changes = record.changes(request);
            let lines = changes
                .into_iter()
                .map(|(change, part)| part_line(change_word(change), part));
            lines.collect()
        }
    }
}

fn change_word(change: PartChange) -> &'static str {
    match change {
        PartChange::Same => "as before: ",
        PartChange::New => "new: ",
        PartChange::Changed => "changed: ",
        PartChange::Gone => "gone: ",
    }
}

fn part_line(change: &str, part: &RecordedPart) -> String {
    format!("  {}", part.line_after(change))
}
