//! The transcript for the extraction of facts: the conversation since the last extraction in
//! pieces, each with its trust level.
//!
//! Trust does not depend on how a model behaves. Everything before the first untrusted result or
//! notice is trusted. After it, only text that the person typed is: an answer may repeat untrusted content,
//! and a file may have been written by the agent because untrusted content told it to.
//!
//! Unlike the transcript for summaries, results and arguments are cut short, harness messages,
//! thinking and media are left out, and every piece keeps its entry and trust level: facts come from
//! what people and the agent say, and need a source.
//!
//! Effects: none.

use std::collections::BTreeMap;
use stead_core::{
    Block, CallResult, Entry, JournalLine, ModelReply, NestedId, SessionChange, text_tokens,
};

/// The most characters of a call's arguments that are shown.
const ARGS_CHARS: usize = 500;
/// The most characters of a result that are shown.
const RESULT_CHARS: usize = 1_000;
/// The most characters of an input or an answer that are shown.
const MESSAGE_CHARS: usize = 20_000;
/// The beginning of a text block with an attached file.
const ATTACHED: &str = "Attached file ";
/// The tokens that a request adds to each piece.
const PIECE_TOKENS: u64 = 24;

/// The author of a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TranscriptSpeaker {
    /// The person.
    User,
    /// A file that the person attached.
    Attachment,
    /// The agent.
    Agent,
    /// A tool.
    Tool(String),
}

impl TranscriptSpeaker {
    /// The name in the source of a fact.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Attachment => "file",
            Self::Agent => "agent",
            Self::Tool(_) => "tool",
        }
    }
}

/// Whether a piece is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustLevel {
    Trusted,
    Untrusted,
}

/// One piece of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TranscriptPiece {
    pub(crate) seq: u64,
    pub(crate) speaker: TranscriptSpeaker,
    pub(crate) text: String,
    pub(crate) trust: TrustLevel,
}

/// A part of a session that fits into one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TranscriptChunk {
    pub(crate) pieces: Vec<TranscriptPiece>,
    /// The last entry that it includes.
    pub(crate) upto: u64,
}

/// Returns the pieces after entry `after`, up to entry `upto`, without what was rewound.
pub(crate) fn pieces(lines: &[JournalLine], after: u64, upto: u64) -> Vec<TranscriptPiece> {
    let mut pieces = Vec::<TranscriptPiece>::new();
    let mut tools = BTreeMap::<&str, &str>::new();
    let mut trust = SessionTrust::default();
    for line in lines {
        let seq = line.seq;
        match &line.entry {
            // Entries that were rewound later are left out, too.
            Entry::Rewind(rewind) => {
                pieces.retain(|piece| piece.seq <= rewind.to);
                trust.rewind(rewind.to);
            }
            _ if seq > upto => {}
            Entry::User(input) => pieces.extend(input_pieces(seq, &input.content, trust.level())),
            Entry::Steer(steer) => pieces.extend(input_pieces(seq, &steer.content, trust.level())),
            Entry::Model(reply) => pieces.extend(reply_piece(seq, reply, trust.level())),
            Entry::Call(intent) => {
                tools.insert(&intent.id, &intent.tool);
            }
            Entry::Result(result) => {
                if result.untrusted {
                    trust.tainted.push(seq);
                }
                // The call that made a nested call reports what matters of it.
                if NestedId::parse(&result.id).is_some() {
                    continue;
                }
                // A call without intent was refused; its name may be made up by the model.
                let tool = tools.get(result.id.as_str()).copied().unwrap_or("a tool");
                pieces.extend(result_piece(seq, result, tool, trust.level()));
            }
            Entry::Notice(notice) if notice.untrusted => trust.tainted.push(seq),
            // A subagent whose parent was tainted was given words of that.
            Entry::Session(start) => {
                let ceiling = start.spawned.as_ref().map(|spawned| &spawned.ceiling);
                if ceiling.is_some_and(|ceiling| ceiling.tainted) {
                    trust.tainted.push(seq);
                }
            }
            Entry::Set(set) => match &set.change {
                SessionChange::Trust => trust.trusted.push(seq),
                SessionChange::Ceiling(ceiling) if ceiling.tainted => {
                    trust.tainted.push(seq);
                }
                SessionChange::Ceiling(_)
                | SessionChange::Title { .. }
                | SessionChange::Todos { .. }
                | SessionChange::Plan { .. }
                | SessionChange::Agent { .. }
                | SessionChange::Mode { .. }
                | SessionChange::Model { .. } => {}
            },
            Entry::Ask(_)
            | Entry::Decision(_)
            | Entry::Notice(_)
            | Entry::Pin(_)
            | Entry::Hook(_)
            | Entry::Sent(_)
            | Entry::Compaction(_)
            | Entry::End(_) => {}
        }
    }
    pieces.retain(|piece| piece.seq > after);
    pieces
}

/// The entries that tainted a session, and those with which a person vouched for it so far.
#[derive(Default)]
struct SessionTrust {
    tainted: Vec<u64>,
    trusted: Vec<u64>,
}

impl SessionTrust {
    fn rewind(&mut self, to: u64) {
        self.tainted.retain(|seq| *seq <= to);
        self.trusted.retain(|seq| *seq <= to);
    }

    /// Returns the trust level of what an agent or a tool says now.
    fn level(&self) -> TrustLevel {
        if self.tainted.last() > self.trusted.last() {
            TrustLevel::Untrusted
        } else {
            TrustLevel::Trusted
        }
    }
}

/// Returns the pieces of an input: typed text is always trusted, attached files are not.
fn input_pieces(seq: u64, content: &[Block], trust: TrustLevel) -> Vec<TranscriptPiece> {
    let piece = |block: &Block| match block {
        Block::Text { text } if text.starts_with(ATTACHED) => Some(TranscriptPiece {
            seq,
            speaker: TranscriptSpeaker::Attachment,
            text: clipped(text, RESULT_CHARS),
            trust,
        }),
        Block::Text { text } => Some(TranscriptPiece {
            seq,
            speaker: TranscriptSpeaker::User,
            text: clipped(text, MESSAGE_CHARS),
            trust: TrustLevel::Trusted,
        }),
        Block::Media(_) | Block::Thinking(_) | Block::ToolCall(_) => None,
    };
    content.iter().filter_map(piece).collect()
}

/// Returns the piece of a model's reply, with its calls.
fn reply_piece(seq: u64, reply: &ModelReply, trust: TrustLevel) -> Option<TranscriptPiece> {
    let parts = reply.content.iter().filter_map(|block| match block {
        Block::Text { text } => Some(clipped(text, MESSAGE_CHARS)),
        Block::ToolCall(call) => Some(format!(
            "[calls {} {}]",
            call.name,
            clipped(&call.args.to_string(), ARGS_CHARS)
        )),
        Block::Media(_) | Block::Thinking(_) => None,
    });
    let text = parts.collect::<Vec<_>>().join("\n");
    (!text.trim().is_empty()).then_some(TranscriptPiece {
        seq,
        speaker: TranscriptSpeaker::Agent,
        text,
        trust,
    })
}

fn result_piece(
    seq: u64,
    result: &CallResult,
    tool: &str,
    trust: TrustLevel,
) -> Option<TranscriptPiece> {
    let text = stead_core::Message::User {
        content: result.content.clone(),
    }
    .text();
    let text = clipped(&text, RESULT_CHARS);
    (!text.trim().is_empty()).then(|| TranscriptPiece {
        seq,
        speaker: TranscriptSpeaker::Tool(tool.to_owned()),
        text,
        trust,
    })
}

/// Returns the beginning of a text.
fn clipped(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((at, _)) => format!("{} […]", &text[..at]),
    }
}

/// Returns about how many tokens the text of pieces has.
pub(crate) fn piece_tokens(pieces: &[TranscriptPiece]) -> u64 {
    let tokens = |piece: &TranscriptPiece| text_tokens(&piece.text) + PIECE_TOKENS;
    pieces.iter().map(tokens).sum()
}

/// Returns the first pieces that have at most `tokens` together; a single larger piece is cut.
/// `None` if there are no pieces.
pub(crate) fn first_chunk(
    pieces: Vec<TranscriptPiece>,
    upto: u64,
    tokens: u64,
) -> Option<TranscriptChunk> {
    let mut taken: Vec<TranscriptPiece> = Vec::new();
    let mut used = 0;
    for mut piece in pieces {
        let cost = text_tokens(&piece.text) + PIECE_TOKENS;
        // Pieces of one entry stay together, because a mark is always between entries.
        let same_entry = taken.last().is_some_and(|last| last.seq == piece.seq);
        if used + cost > tokens && !taken.is_empty() && !same_entry {
            let upto = taken.last().map_or(upto, |last| last.seq);
            return Some(TranscriptChunk {
                pieces: taken,
                upto,
            });
        }
        let left = tokens.saturating_sub(used);
        if cost > left {
            piece.text = truncate_to_tokens(&piece.text, left.saturating_sub(PIECE_TOKENS));
        }
        used += cost;
        taken.push(piece);
    }
    (!taken.is_empty()).then_some(TranscriptChunk {
        pieces: taken,
        upto,
    })
}

/// Returns the beginning of a text with at most `tokens` tokens.
pub(crate) fn truncate_to_tokens(text: &str, tokens: u64) -> String {
    let mut end = text.len();
    while end > 0 && text_tokens(&text[..end]) > tokens {
        end = text.floor_char_boundary(end / 2);
    }
    text[..end].to_owned()
}

impl TranscriptChunk {
    /// Whether it has untrusted pieces.
    pub(crate) fn has_untrusted(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| piece.trust == TrustLevel::Untrusted)
    }

    /// Whether it has trusted pieces.
    pub(crate) fn has_trusted(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| piece.trust == TrustLevel::Trusted)
    }

    /// About how many tokens its text has.
    pub(crate) fn tokens(&self) -> u64 {
        piece_tokens(&self.pieces)
    }

    /// Returns the text for the extraction of trusted facts, without untrusted pieces. The number
    /// of each entry is `offset` larger.
    pub(crate) fn trusted_view(&self, offset: u64) -> String {
        self.render(offset, |piece| match (piece.trust, &piece.speaker) {
            (TrustLevel::Trusted, _) => piece.text.clone(),
            (TrustLevel::Untrusted, TranscriptSpeaker::Tool(name)) => {
                format!("[left out: output of {name}]")
            }
            (TrustLevel::Untrusted, TranscriptSpeaker::Agent) => {
                "[left out: an answer given after words from outside came in]".to_owned()
            }
            (TrustLevel::Untrusted, TranscriptSpeaker::Attachment | TranscriptSpeaker::User) => {
                "[left out: an attached file]".to_owned()
            }
        })
    }

    /// Returns the text of all pieces. The number of each entry is `offset` larger.
    pub(crate) fn full_view(&self, offset: u64) -> String {
        self.render(offset, |piece| piece.text.clone())
    }

    fn render(&self, offset: u64, text: impl Fn(&TranscriptPiece) -> String) -> String {
        let line = |piece: &TranscriptPiece| {
            let number = piece.seq + offset;
            format!("[{number}] {}: {}", piece.speaker.name(), text(piece))
        };
        self.pieces
            .iter()
            .map(line)
            .collect::<Vec<_>>()
            .join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{Notice, NoticeKind, Rewind, RunId, SetEntry, StopReason, Usage};

    fn levels(entries: Vec<Entry>) -> Vec<TrustLevel> {
        let line = |(i, entry): (usize, Entry)| JournalLine {
            seq: i as u64 + 1,
            at: jiff::Timestamp::UNIX_EPOCH,
            entry,
            sum: stead_core::ChainSum::default(),
        };
        let lines: Vec<JournalLine> = entries.into_iter().enumerate().map(line).collect();
        let all = pieces(&lines, 0, u64::MAX).into_iter();
        all.map(|piece| piece.trust).collect()
    }

    #[test]
    fn an_untrusted_notice_taints_what_follows_until_a_person_vouches_for_it() {
        use TrustLevel::{Trusted, Untrusted};
        let run = || RunId::new("r").unwrap();
        let said = || {
            Entry::Model(ModelReply {
                run: run(),
                model: "m".into(),
                content: vec![Block::text("words")],
                usage: Usage::default(),
                cost: None,
                stop: StopReason::EndTurn,
            })
        };
        let told = |untrusted| {
            Entry::Notice(Notice {
                untrusted,
                ..Notice::new(run(), NoticeKind::Tasks, "a task has ended")
            })
        };
        let trust = || {
            Entry::Set(SetEntry {
                change: SessionChange::Trust,
                by: "ann".into(),
            })
        };
        let back = |to| Entry::Rewind(Rewind { to });
        let table = [
            (vec![said(), told(false), said()], vec![Trusted, Trusted]),
            (vec![said(), told(true), said()], vec![Trusted, Untrusted]),
            (
                vec![told(true), said(), trust(), said()],
                vec![Untrusted, Trusted],
            ),
            (
                vec![told(true), trust(), told(true), said()],
                vec![Untrusted],
            ),
            // A rewind to before a person's word takes it back.
            (vec![told(true), trust(), back(1), said()], vec![Untrusted]),
            (
                vec![said(), told(true), back(1), said()],
                vec![Trusted, Trusted],
            ),
        ];
        for (entries, expected) in table {
            assert_eq!(levels(entries.clone()), expected, "{entries:?}");
        }
    }
}
