//! Where untrusted content comes from, and what has tainted a session.
//!
//! Effects: none.

use crate::{Entry, JournalLine, SessionChange, SessionId};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The most origins that are named in one place; more are counted.
pub const MAX_TAINT_ORIGINS: usize = 16;
/// The most characters of a command that an origin keeps.
const MAX_COMMAND_CHARS: usize = 80;

/// A source that nobody vouched for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TaintOrigin {
    /// Another machine, reached by a tool.
    Network {
        /// The tool.
        tool: String,
        /// The machine, if the tool named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
    },
    /// A command that could reach the network or ran outside whole walls.
    Command {
        /// The beginning of the command, or the name of the tool that ran it.
        command: String,
    },
    /// A tool server.
    Server {
        /// Its name.
        name: String,
    },
    /// The client that runs the agent, which answered a call.
    Client {
        /// The tool whose call it answered.
        tool: String,
    },
    /// A file that a tainted call wrote.
    File {
        /// Its path.
        path: String,
    },
    /// The records of another session, or the result of a subagent.
    Session {
        /// The session.
        id: SessionId,
    },
    /// A source that is not recorded, or of a kind that this version does not know.
    #[serde(other)]
    Unknown,
}

impl TaintOrigin {
    /// Returns the origin of the output of a command.
    pub fn command(line: &str) -> Self {
        let words: Vec<&str> = line.split_whitespace().collect();
        let line = words.join(" ");
        let command = match line.char_indices().nth(MAX_COMMAND_CHARS) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        };
        Self::Command { command }
    }
}

impl fmt::Display for TaintOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network {
                tool,
                host: Some(host),
            } => write!(f, "{host} (through {tool})"),
            Self::Network { tool, host: None } => write!(f, "another machine (through {tool})"),
            Self::Command { command } => write!(f, "the command `{command}`"),
            Self::Server { name } => write!(f, "the tool server {name}"),
            Self::Client { tool } => write!(f, "the client (its answer to {tool})"),
            Self::File { path } => write!(f, "the file {path}"),
            Self::Session { id } => write!(f, "the session {id}"),
            Self::Unknown => f.write_str("an unrecorded source"),
        }
    }
}

/// The origins of the untrusted content that a session has taken in: the first few by name, in the
/// order in which they came, and the number of the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaintOrigins {
    /// The first origins, without duplicates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    named: Vec<TaintOrigin>,
    /// How many further origins there are, at most.
    #[serde(default, skip_serializing_if = "is_zero")]
    more: u64,
}

impl TaintOrigins {
    /// Adds an origin.
    pub fn add(&mut self, origin: TaintOrigin) {
        if self.named.contains(&origin) {
            return;
        }
        if self.named.len() < MAX_TAINT_ORIGINS {
            self.named.push(origin);
        } else {
            self.more += 1;
        }
    }

    /// Adds all origins of `other`.
    pub fn add_all(&mut self, other: &Self) {
        other
            .named
            .iter()
            .for_each(|origin| self.add(origin.clone()));
        // The others may be the same ones.
        self.more = self.more.max(other.more);
    }

    /// Returns the origins that are named.
    pub fn named(&self) -> &[TaintOrigin] {
        &self.named
    }

    /// Returns how many further origins there are, at most.
    pub fn more(&self) -> u64 {
        self.more
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty() && self.more == 0
    }
}

impl FromIterator<TaintOrigin> for TaintOrigins {
    fn from_iter<I: IntoIterator<Item = TaintOrigin>>(origins: I) -> Self {
        let mut all = Self::default();
        origins.into_iter().for_each(|origin| all.add(origin));
        all
    }
}

/// For a question: the first three origins, and how many more there are.
impl fmt::Display for TaintOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        let mut names: Vec<String> = self
            .named
            .iter()
            .take(SHOWN)
            .map(ToString::to_string)
            .collect();
        let left = self.named.len().saturating_sub(SHOWN) as u64 + self.more;
        match (names.is_empty(), left) {
            (true, _) => names.push(TaintOrigin::Unknown.to_string()),
            (false, 0) => {}
            (false, left) => names.push(format!("{left} more")),
        }
        f.write_str(&names.join(", "))
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What has tainted a session, entry by entry, with the words of people who vouched for all that
/// came before. A rewind returns to an earlier point of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TaintHistory {
    marks: Vec<TaintMark>,
    /// The entries with which a person vouched for the session so far.
    trusted: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq)]
struct TaintMark {
    seq: u64,
    origin: TaintOrigin,
}

impl TaintHistory {
    /// Adds the untrusted content of entry `seq`. Without an origin its source is not recorded.
    pub(crate) fn taint(&mut self, seq: u64, origins: &[TaintOrigin]) {
        const UNKNOWN: [TaintOrigin; 1] = [TaintOrigin::Unknown];
        let origins = match origins.is_empty() {
            true => &UNKNOWN,
            false => origins,
        };
        for origin in origins {
            let current = self.current();
            let is_known = current.clone().any(|mark| mark.origin == *origin);
            // One mark beyond those that are named says that there are more.
            if !is_known && current.count() <= MAX_TAINT_ORIGINS {
                self.marks.push(TaintMark {
                    seq,
                    origin: origin.clone(),
                });
            }
        }
    }

    /// Adds the word of a person, in entry `seq`, that everything so far is trusted.
    pub(crate) fn trust(&mut self, seq: u64) {
        self.trusted.push(seq);
    }

    /// Returns to the point after entry `to`.
    pub(crate) fn rewind(&mut self, to: u64) {
        self.marks.retain(|mark| mark.seq <= to);
        self.trusted.retain(|seq| *seq <= to);
    }

    /// Returns the first entry with untrusted content that nobody vouched for.
    pub(crate) fn first(&self) -> Option<u64> {
        self.current().next().map(|mark| mark.seq)
    }

    /// Returns the origins of the untrusted content that nobody vouched for.
    pub(crate) fn origins(&self) -> TaintOrigins {
        self.current().map(|mark| mark.origin.clone()).collect()
    }

    fn current(&self) -> impl Iterator<Item = &TaintMark> + Clone {
        let since = self.trusted.last().copied().unwrap_or(0);
        self.marks.iter().filter(move |mark| mark.seq > since)
    }
}

/// Returns the last entry up to `upto` in which a person vouched for everything before. Words that
/// were rewound do not count.
fn trusted_until(lines: &[JournalLine], upto: u64) -> u64 {
    let mut trusted: Vec<u64> = Vec::new();
    for line in lines {
        if let Entry::Rewind(rewind) = &line.entry {
            trusted.retain(|seq| *seq <= rewind.to);
        }
        if let Entry::Set(set) = &line.entry
            && set.change == SessionChange::Trust
        {
            trusted.push(line.seq);
        }
    }
    let mut before = trusted.into_iter().filter(|seq| *seq <= upto);
    before.next_back().unwrap_or(0)
}

/// Returns the origins of the untrusted content in the entries of a journal up to `upto`. Entries
/// that were rewound count, because their text is still there; entries that a person vouched for
/// do not.
pub fn recorded_taint(lines: &[JournalLine], upto: u64) -> TaintOrigins {
    let since = trusted_until(lines, upto);
    let counts = |line: &&JournalLine| line.seq > since && line.seq <= upto;
    let mut history = TaintHistory::default();
    for line in lines.iter().filter(counts) {
        match &line.entry {
            Entry::Result(result) if result.untrusted => history.taint(line.seq, &result.taint),
            Entry::Notice(notice) if notice.untrusted => history.taint(line.seq, &notice.taint),
            Entry::Session(start) => {
                let ceiling = start.spawned.as_ref().map(|spawned| &spawned.ceiling);
                if let Some(ceiling) = ceiling.filter(|ceiling| ceiling.tainted) {
                    history.taint(line.seq, ceiling.taint.named());
                }
            }
            Entry::Set(set) => match &set.change {
                SessionChange::Ceiling(ceiling) if ceiling.tainted => {
                    history.taint(line.seq, ceiling.taint.named());
                }
                SessionChange::Ceiling(_)
                | SessionChange::Trust
                | SessionChange::Title { .. }
                | SessionChange::Todos { .. }
                | SessionChange::Plan { .. }
                | SessionChange::Agent { .. }
                | SessionChange::Mode { .. }
                | SessionChange::Model { .. } => {}
            },
            Entry::Result(_)
            | Entry::Notice(_)
            | Entry::User(_)
            | Entry::Model(_)
            | Entry::Call(_)
            | Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Steer(_)
            | Entry::Pin(_)
            | Entry::Compaction(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_) => {}
        }
    }
    history.origins()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChainSum, Notice, NoticeKind, Rewind, RunId, SetEntry};

    fn file(path: &str) -> TaintOrigin {
        TaintOrigin::File {
            path: path.to_owned(),
        }
    }

    #[test]
    fn origins_read_back_as_they_were_written_and_unknown_kinds_are_accepted() {
        let table = [
            (
                TaintOrigin::Network {
                    tool: "fetch".into(),
                    host: Some("x.org".into()),
                },
                r#"{"kind":"network","tool":"fetch","host":"x.org"}"#,
                "x.org (through fetch)",
            ),
            (
                TaintOrigin::command("make  all\n-j2"),
                r#"{"kind":"command","command":"make all -j2"}"#,
                "the command `make all -j2`",
            ),
            (
                file("a.md"),
                r#"{"kind":"file","path":"a.md"}"#,
                "the file a.md",
            ),
            (
                TaintOrigin::Unknown,
                r#"{"kind":"unknown"}"#,
                "an unrecorded source",
            ),
        ];
        for (origin, written, shown) in table {
            assert_eq!(serde_json::to_string(&origin).unwrap(), written);
            assert_eq!(
                serde_json::from_str::<TaintOrigin>(written).unwrap(),
                origin
            );
            assert_eq!(origin.to_string(), shown);
        }
        let later = r#"{"kind":"satellite","orbit":7}"#;
        assert_eq!(
            serde_json::from_str::<TaintOrigin>(later).unwrap(),
            TaintOrigin::Unknown
        );
    }

    #[test]
    fn only_the_first_origins_are_named_and_the_others_are_counted() {
        let all: TaintOrigins = (0..20).map(|n| file(&format!("{n}"))).collect();
        assert_eq!((all.named().len(), all.more()), (MAX_TAINT_ORIGINS, 4));
        assert_eq!(
            all.to_string(),
            "the file 0, the file 1, the file 2, 17 more"
        );
        assert_eq!(
            TaintOrigins::default().to_string(),
            TaintOrigin::Unknown.to_string()
        );
    }

    #[test]
    fn a_persons_word_ends_the_taint_and_a_rewind_returns_to_what_was() {
        let mut history = TaintHistory::default();
        history.taint(3, &[]);
        history.taint(4, &[file("a")]);
        history.taint(5, &[file("a")]);
        assert_eq!(
            (history.first(), history.origins().named()),
            (Some(3), &[TaintOrigin::Unknown, file("a")][..])
        );
        history.trust(6);
        assert_eq!(
            (history.first(), history.origins().is_empty()),
            (None, true)
        );
        history.taint(8, &[file("a")]);
        assert_eq!(history.first(), Some(8));
        history.rewind(7);
        assert_eq!(history.first(), None);
        history.rewind(4);
        assert_eq!(history.first(), Some(3));
        history.rewind(3);
        assert_eq!(history.origins().named(), [TaintOrigin::Unknown]);
    }

    #[test]
    fn a_persons_word_that_was_rewound_does_not_count_for_recorded_entries() {
        let notice = Entry::Notice(Notice {
            run: RunId::new("r").unwrap(),
            kind: NoticeKind::Context,
            text: "from a page".to_owned(),
            tasks: Vec::new(),
            tools: None,
            untrusted: true,
            taint: vec![file("a")],
        });
        let trust = Entry::Set(SetEntry {
            change: SessionChange::Trust,
            by: "ann".to_owned(),
        });
        let entries = [notice, trust, Entry::Rewind(Rewind { to: 1 })];
        let lines: Vec<JournalLine> = (1..)
            .zip(entries)
            .map(|(seq, entry)| JournalLine {
                seq,
                at: jiff::Timestamp::UNIX_EPOCH,
                entry,
                sum: ChainSum::START,
            })
            .collect();
        assert_eq!(recorded_taint(&lines[..2], 2).named(), []);
        assert_eq!(recorded_taint(&lines, 2).named(), [file("a")]);
        assert_eq!(recorded_taint(&lines, 0).named(), []);
    }
}
