//! One line of a journal: `{"seq":…,"at":…,"kind":…,"data":{…},"sum":"…"}`.
//!
//! The checksum of a line covers its text and the checksum of the line before it, so a journal is a
//! chain: a changed, missing or reordered line is detected.
//!
//! Effects: none.

use crate::{Entry, EntryKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

const SUM_HEX_CHARS: usize = 16;
/// The length of `,"sum":"`, 16 hex digits and `"}`.
const SUM_FIELD_BYTES: usize = 8 + SUM_HEX_CHARS + 2;

/// The checksum of a line, chained over all lines before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChainSum([u8; SUM_HEX_CHARS / 2]);

impl ChainSum {
    /// The checksum before the first line.
    pub const START: Self = Self([0; SUM_HEX_CHARS / 2]);

    fn next(self, text: &[u8]) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(text);
        let digest = hasher.finalize();
        let mut sum = [0; SUM_HEX_CHARS / 2];
        sum.copy_from_slice(&digest[..SUM_HEX_CHARS / 2]);
        Self(sum)
    }

    /// Parses a checksum in the form in which it is printed; any other form is a changed line.
    fn parse(hex: &str) -> Option<Self> {
        let is_printed = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if hex.len() != SUM_HEX_CHARS || !hex.bytes().all(is_printed) {
            return None;
        }
        let number = u64::from_str_radix(hex, 16).ok()?;
        Some(Self(number.to_be_bytes()))
    }

    /// Returns the checksum that a line (without its newline) says it has. Only decoding it tells
    /// whether that is true.
    pub fn claimed_by(line: &[u8]) -> Option<Self> {
        let hex = line.strip_suffix(b"\"}")?.last_chunk::<SUM_HEX_CHARS>()?;
        Self::parse(std::str::from_utf8(hex).ok()?)
    }
}

impl std::fmt::Display for ChainSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", u64::from_be_bytes(self.0))
    }
}

impl Serialize for ChainSum {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ChainSum {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(HexVisitor)
    }
}

/// Parses a checksum where it lies: journals have one in each line.
struct HexVisitor;

impl serde::de::Visitor<'_> for HexVisitor {
    type Value = ChainSum;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a sum of 16 hexadecimal digits")
    }

    fn visit_str<E: serde::de::Error>(self, hex: &str) -> Result<ChainSum, E> {
        ChainSum::parse(hex).ok_or_else(|| E::custom("a sum is 16 hexadecimal digits"))
    }
}

/// A decoded line.
#[derive(Debug, Clone, PartialEq)]
pub struct JournalLine {
    /// The position in the journal, from 1, without gaps.
    pub seq: u64,
    /// The time when it was written.
    pub at: jiff::Timestamp,
    /// The entry.
    pub entry: Entry,
    /// The chained checksum up to and including this line.
    pub sum: ChainSum,
}

/// The reason why a line could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LineError {
    /// Not a journal line.
    #[error("not a journal line: {0}")]
    Malformed(String),
    /// The text does not match its checksum, or does not follow the line before it.
    #[error("the checksum does not match: this line, or one before it, was changed or removed")]
    Checksum,
    /// A kind this version does not know.
    #[error("entry kind {0:?} is unknown to this version of stead; use a newer one")]
    UnknownKind(String),
}

/// Encodes `entry` as one line including its newline. Returns it with the new checksum.
pub fn encode_line(
    seq: u64,
    at: jiff::Timestamp,
    entry: &Entry,
    previous: ChainSum,
) -> (String, ChainSum) {
    let kind = kind_name(entry.kind());
    let data = match entry {
        Entry::Session(data) => json(data),
        Entry::User(data) => json(data),
        Entry::Model(data) => json(data),
        Entry::Call(data) => json(data),
        Entry::Result(data) => json(data),
        Entry::Ask(data) => json(data),
        Entry::Decision(data) => json(data),
        Entry::Notice(data) => json(data),
        Entry::Steer(data) => json(data),
        Entry::Set(data) => json(data),
        Entry::Pin(data) => json(data),
        Entry::Compaction(data) => json(data),
        Entry::Hook(data) => json(data),
        Entry::Sent(data) => json(data),
        Entry::Rewind(data) => json(data),
        Entry::End(data) => json(data),
    };
    append_sum(
        format!(r#"{{"seq":{seq},"at":"{at:.3}","kind":"{kind}","data":{data}"#),
        previous,
    )
}

/// Appends the checksum to a line's text.
fn append_sum(mut text: String, previous: ChainSum) -> (String, ChainSum) {
    let sum = previous.next(text.as_bytes());
    text.push_str(&format!(",\"sum\":\"{sum}\"}}\n"));
    (text, sum)
}

impl crate::Redactor {
    /// Returns `line` without secrets, with a matching checksum.
    pub fn redact_line(&self, line: (String, ChainSum), previous: ChainSum) -> (String, ChainSum) {
        if matches!(self.redact(&line.0), std::borrow::Cow::Borrowed(_)) {
            return line;
        }
        let Ok(mut value) = serde_json::from_str::<Value>(&line.0) else {
            return line;
        };
        let original = value["data"].clone();
        self.redact_data(&mut value["data"]);
        let redacted = seal_value(&value, previous);
        if decode_line(redacted.0.trim_end(), previous).is_ok() {
            return redacted;
        }
        // A secret is a word of the journal that no field name gave away: only that word stays.
        let mut kept = original.clone();
        for path in redacted_paths(&original, "") {
            value["data"] = kept.clone();
            if let Some(text) = value["data"].pointer_mut(&path) {
                self.redact_all(text);
            }
            if decode_line(seal_value(&value, previous).0.trim_end(), previous).is_ok() {
                kept = value["data"].take();
            }
        }
        value["data"] = kept;
        seal_value(&value, previous)
    }

    /// Redacts content and leaves the journal's own field values alone: a secret that happens to be
    /// `result` must not make a line unreadable. What a model chooses (the ids and names of its
    /// calls) is redacted before it is recorded, where tools and their names are known.
    fn redact_data(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                // The name of a file is nobody's structure.
                let is_media = fields.get("type").is_some_and(|of| of == "media");
                for (key, value) in fields {
                    if is_structural(key, value) && !(is_media && key == "name") {
                        continue;
                    }
                    if key == "args" {
                        self.redact_all(value)
                    } else {
                        self.redact_data(value)
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_data(item)),
            Value::String(_) => self.redact_all(value),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Removes secrets from every text and key of a value.
    pub fn redact_all(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let cleaned = std::mem::take(fields).into_iter().map(|(key, mut value)| {
                    self.redact_all(&mut value);
                    (self.redact(&key).into_owned(), value)
                });
                *fields = cleaned.collect();
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_all(item)),
            Value::String(text) => *text = self.redact(text).into_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Returns whether a field of an entry holds a word or an id of ours, on which reading depends.
fn is_structural(key: &str, value: &Value) -> bool {
    const STRUCTURAL_FIELDS: [&str; 14] = [
        "type",
        "kind",
        "cause",
        "role",
        "run",
        "id",
        "tool",
        "name",
        "status",
        "stop",
        "outcome",
        "origin",
        "args_hash",
        "parent",
    ];
    value.is_string() && STRUCTURAL_FIELDS.contains(&key)
}

/// Returns the JSON pointers of everything below `path` that is redacted as one: strings, and the
/// arguments of calls.
fn redacted_paths(value: &Value, path: &str) -> Vec<String> {
    match value {
        Value::Object(fields) => {
            let below = fields.iter().filter(|(key, it)| !is_structural(key, it));
            let paths = below.flat_map(|(key, it)| {
                let path = format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
                match key.as_str() {
                    "args" => vec![path],
                    _ => redacted_paths(it, &path),
                }
            });
            paths.collect()
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items
                .flat_map(|(i, it)| redacted_paths(it, &format!("{path}/{i}")))
                .collect()
        }
        Value::String(_) => vec![path.to_owned()],
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Returns the line of a changed value, with its new checksum.
fn seal_value(line: &Value, previous: ChainSum) -> (String, ChainSum) {
    let text = format!(
        r#"{{"seq":{},"at":{},"kind":{},"data":{}"#,
        line["seq"], line["at"], line["kind"], line["data"]
    );
    append_sum(text, previous)
}

/// Decodes one line (without its newline) that follows `previous`.
pub fn decode_line(text: &str, previous: ChainSum) -> Result<JournalLine, LineError> {
    #[derive(Deserialize)]
    struct RawJournalLine<'a> {
        seq: u64,
        at: jiff::Timestamp,
        #[serde(borrow)]
        kind: std::borrow::Cow<'a, str>,
        #[serde(borrow)]
        data: &'a RawValue,
        sum: ChainSum,
    }
    let malformed = |error: serde_json::Error| LineError::Malformed(error.to_string());
    let raw: RawJournalLine<'_> = serde_json::from_str(text).map_err(malformed)?;
    let covered = text
        .len()
        .checked_sub(SUM_FIELD_BYTES)
        .and_then(|end| text.get(..end))
        .ok_or(LineError::Checksum)?;
    if previous.next(covered.as_bytes()) != raw.sum {
        return Err(LineError::Checksum);
    }
    let data = raw.data.get();
    let entry = match kind_of(&raw.kind)? {
        EntryKind::Session => serde_json::from_str(data).map(Entry::Session),
        EntryKind::User => serde_json::from_str(data).map(Entry::User),
        EntryKind::Model => serde_json::from_str(data).map(Entry::Model),
        EntryKind::Call => serde_json::from_str(data).map(Entry::Call),
        EntryKind::Result => serde_json::from_str(data).map(Entry::Result),
        EntryKind::Ask => serde_json::from_str(data).map(Entry::Ask),
        EntryKind::Decision => serde_json::from_str(data).map(Entry::Decision),
        EntryKind::Notice => serde_json::from_str(data).map(Entry::Notice),
        EntryKind::Steer => serde_json::from_str(data).map(Entry::Steer),
        EntryKind::Set => serde_json::from_str(data).map(Entry::Set),
        EntryKind::Pin => serde_json::from_str(data).map(Entry::Pin),
        EntryKind::Compaction => serde_json::from_str(data).map(Entry::Compaction),
        EntryKind::Hook => serde_json::from_str(data).map(Entry::Hook),
        EntryKind::Sent => serde_json::from_str(data).map(Entry::Sent),
        EntryKind::Rewind => serde_json::from_str(data).map(Entry::Rewind),
        EntryKind::End => serde_json::from_str(data).map(Entry::End),
    }
    .map_err(malformed)?;
    Ok(JournalLine {
        seq: raw.seq,
        at: raw.at,
        entry,
        sum: raw.sum,
    })
}

fn kind_name(kind: EntryKind) -> String {
    json(&kind).trim_matches('"').to_owned()
}

fn kind_of(name: &str) -> Result<EntryKind, LineError> {
    use serde::de::IntoDeserializer;
    let text: serde::de::value::StrDeserializer<'_, serde::de::value::Error> =
        name.into_deserializer();
    EntryKind::deserialize(text).map_err(|_| LineError::UnknownKind(name.to_owned()))
}

fn json(value: &impl Serialize) -> String {
    // These types have string keys and no fallible serialisers. A failure would give a line that no
    // reader accepts, never a wrong one.
    serde_json::to_string(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Block, Media, ModelReply, Notice, NoticeKind, PermissionCeiling, PermissionMode, Redactor,
        RunId, SessionChange, SetEntry, StopReason, Usage,
    };

    fn notice(text: &str) -> Entry {
        Entry::Notice(Notice::new(
            RunId::new("r1").unwrap(),
            NoticeKind::Context,
            text,
        ))
    }

    #[test]
    fn a_line_survives_and_any_changed_byte_is_noticed() {
        let at = "2026-11-15T21:00:00.5Z".parse().unwrap();
        let (text, sum) = encode_line(1, at, &notice("hällo"), ChainSum::START);
        let text = text.trim_end();
        assert_eq!(
            decode_line(text, ChainSum::START).unwrap(),
            JournalLine {
                seq: 1,
                at,
                entry: notice("hällo"),
                sum
            }
        );
        assert_eq!(decode_line(text, sum), Err(LineError::Checksum));
        for i in 0..text.len() {
            for bit in 0..8 {
                let mut bytes = text.as_bytes().to_vec();
                bytes[i] ^= 1 << bit;
                if let Ok(changed) = std::str::from_utf8(&bytes) {
                    assert!(
                        decode_line(changed, ChainSum::START).is_err(),
                        "flip at {i} unnoticed: {changed}"
                    );
                }
            }
            if text.is_char_boundary(i) {
                assert!(
                    decode_line(&text[..i], ChainSum::START).is_err(),
                    "cut at {i} unnoticed"
                );
            }
        }
    }

    #[test]
    fn a_checksum_has_one_form() {
        assert!(ChainSum::parse("00000000000000af").is_some());
        for hex in ["00000000000000AF", "+0000000000000af", "af", ""] {
            assert_eq!(ChainSum::parse(hex), None, "{hex}");
        }
    }

    #[test]
    fn an_unknown_kind_is_refused_by_name() {
        let (text, _) = append_sum(
            r#"{"seq":1,"at":"2026-11-15T21:00:00Z","kind":"dream","data":{}"#.into(),
            ChainSum::START,
        );
        assert_eq!(
            decode_line(text.trim_end(), ChainSum::START),
            Err(LineError::UnknownKind("dream".into()))
        );
    }

    #[test]
    fn a_redacted_line_is_sealed_anew() {
        let at = jiff::Timestamp::UNIX_EPOCH;
        let redactor = Redactor::new(["topsecret".to_owned()]);
        let line = encode_line(1, at, &notice("the topsecret key"), ChainSum::START);
        let (text, _) = redactor.redact_line(line, ChainSum::START);
        let read = decode_line(text.trim_end(), ChainSum::START).unwrap();
        assert_eq!(read.entry, notice("the [redacted] key"));
    }

    #[test]
    fn what_a_provider_chose_is_redacted_and_words_that_reading_needs_stay() {
        let reply = |name: &str, stop: &str| {
            Entry::Model(ModelReply {
                run: RunId::new("r1").unwrap(),
                model: "test:m".to_owned(),
                content: vec![Block::Media(Media::inline(
                    "image/png",
                    "",
                    Some(name.to_owned()),
                ))],
                usage: Usage::default(),
                cost: None,
                stop: StopReason::Other(stop.to_owned()),
            })
        };
        let set = |by: &str| {
            Entry::Set(SetEntry {
                change: SessionChange::Ceiling(PermissionCeiling {
                    modes: vec![PermissionMode::Explore],
                    denied: vec!["[redacted]".to_owned()],
                    ..PermissionCeiling::default()
                }),
                by: by.to_owned(),
            })
        };
        let table = [
            (
                "s3cret-key",
                reply("s3cret-key.png", "s3cret-key"),
                reply("[redacted].png", "[redacted]"),
            ),
            // No field name says that these are words of the journal: `sets` and a list of modes.
            ("ceiling", set("my ceiling"), set("my [redacted]")),
            ("explore", set("an explorer"), set("an [redacted]r")),
        ];
        for (secret, entry, expected) in table {
            let redactor = Redactor::new([secret.to_owned()]);
            let line = encode_line(1, jiff::Timestamp::UNIX_EPOCH, &entry, ChainSum::START);
            let (text, _) = redactor.redact_line(line, ChainSum::START);
            let read = decode_line(text.trim_end(), ChainSum::START).unwrap();
            assert_eq!(read.entry, expected, "{secret}");
        }
    }

    #[test]
    fn a_secret_that_is_a_word_of_the_journal_does_not_break_it() {
        let redactor = Redactor::new(["notice".to_owned(), "content".to_owned()]);
        let line = encode_line(
            1,
            jiff::Timestamp::UNIX_EPOCH,
            &notice("a notice of content"),
            ChainSum::START,
        );
        let (text, _) = redactor.redact_line(line, ChainSum::START);
        let read = decode_line(text.trim_end(), ChainSum::START).unwrap();
        assert_eq!(read.entry, notice("a [redacted] of [redacted]"));
    }
}
