//! One fact: a bullet of plain Markdown with its source in a comment.
//!
//! `- Prefers tabs. <!-- stead: id=4f0c… session=s1 seq=3-9 by=user on=2026-11-16 -->`
//!
//! A bullet that was merged from several facts lists all their sources, separated by ` ; `.
//!
//! Effects: none.

use std::fmt;
use stead_core::Redactor;
use stead_vfs::ContentHash;

/// The length of the longest fact, in characters.
pub const MAX_FACT_CHARS: usize = 500;
const OPEN: &str = "<!-- stead: ";
const CLOSE: &str = "-->";
const ID_CHARS: usize = 12;

/// One line of long-term memory with its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// The text, in one line.
    pub text: String,
    /// The sources; never empty.
    pub sources: Vec<FactSource>,
}

/// The source of a fact: keys and values, the id first.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct FactSource(pub Vec<(String, String)>);

impl FactSource {
    /// Creates a source with an id. Other values are added with [`FactSource::with`].
    pub fn new(id: impl Into<String>) -> Self {
        Self(vec![("id".to_owned(), id.into())])
    }

    /// Sets the value of `key`.
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some(note) => note.1 = value,
            None => self.0.push((key.to_owned(), value)),
        }
        self
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the id.
    pub fn id(&self) -> &str {
        self.get("id").unwrap_or_default()
    }

    fn parse(text: &str) -> Option<Self> {
        let notes = text.split_ascii_whitespace().map(|note| {
            let (key, value) = note.split_once('=')?;
            Some((key.to_owned(), unescaped(value)))
        });
        let source = Self(notes.collect::<Option<_>>()?);
        (!source.id().is_empty()).then_some(source)
    }
}

impl fmt::Display for FactSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (key, value)) in self.0.iter().enumerate() {
            write!(
                f,
                "{}{key}={}",
                if i > 0 { " " } else { "" },
                escaped(value)
            )?;
        }
        Ok(())
    }
}

impl Fact {
    /// Creates a fact with one source; `None` if the text is empty after it was cleaned.
    pub fn new(text: &str, source: FactSource, redactor: &Redactor) -> Option<Self> {
        let text = one_line(&redactor.redact(text));
        (!text.is_empty()).then(|| Self {
            text,
            sources: vec![source],
        })
    }

    /// Parses a line; `None` if it is not a bullet with a source.
    pub fn parse(line: &str) -> Option<Self> {
        let bullet = line.trim();
        let rest = ["- ", "* ", "+ "]
            .iter()
            .find_map(|mark| bullet.strip_prefix(mark))?;
        let (text, comment) = rest.rsplit_once(OPEN)?;
        let sources = comment
            .strip_suffix(CLOSE)?
            .split(" ; ")
            .map(FactSource::parse);
        let sources: Vec<FactSource> = sources.collect::<Option<_>>()?;
        let text = text.trim();
        (!text.is_empty() && !text.contains(OPEN)).then(|| Self {
            text: text.to_owned(),
            sources,
        })
    }

    /// Returns the id of the fact: that of its first source.
    pub fn id(&self) -> &str {
        self.sources.first().map(FactSource::id).unwrap_or_default()
    }

    /// Returns the ids of all its sources.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.sources.iter().map(FactSource::id)
    }

    /// Sets the value of `key` in every source.
    pub fn with_note(self, key: &str, value: &str) -> Self {
        let sources = self
            .sources
            .into_iter()
            .map(|source| source.with(key, value));
        Self {
            sources: sources.collect(),
            ..self
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "- {} {OPEN}", self.text)?;
        for (i, source) in self.sources.iter().enumerate() {
            write!(f, "{}{source}", if i > 0 { " ; " } else { "" })?;
        }
        write!(f, " {CLOSE}")
    }
}

/// Returns an id that depends only on `parts`.
pub(crate) fn stable_id(parts: &[&str]) -> String {
    let mut id = ContentHash::of(parts.join("\0").as_bytes()).to_string();
    id.truncate(ID_CHARS);
    id
}

/// Returns the text as one line of limited length that can neither end the bullet nor open or close
/// a comment.
pub(crate) fn one_line(text: &str) -> String {
    let printable = text.chars().map(|c| {
        if c.is_control() || is_invisible(c) {
            ' '
        } else {
            c
        }
    });
    let joined = printable
        .collect::<String>()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let cut: String = joined.chars().take(MAX_FACT_CHARS).collect();
    cut.replace("<!--", "<! --")
        .replace("-->", "-- >")
        .trim()
        .to_owned()
}

/// Whether a character is invisible and could hide text: direction marks and zero-width characters.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns the words of a text in lower case, without punctuation. Facts with equal results are
/// duplicates.
pub(crate) fn normalised(text: &str) -> String {
    let letters = text.chars().flat_map(char::to_lowercase);
    let words: String = letters
        .map(|c| if c.is_alphanumeric() { c } else { ' ' })
        .collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns a line without its sources, as models and searches see it.
pub fn without_sources(line: &str) -> &str {
    match Fact::parse(line).and_then(|_| line.rsplit_once(OPEN)) {
        Some((shown, _)) => shown.trim_end(),
        None => line,
    }
}

fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'-' | b'_' | b'.' | b',' | b':' | b'@' | b'+' | b'/' => text.push(char::from(byte)),
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = text.get(at + 1..at + 3).filter(|_| bytes[at] == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_bullet_that_says_where_it_is_from_is_a_fact() {
        let source = |id: &str| FactSource::new(id);
        #[rustfmt::skip]
        let table = [
            ("- Prefers tabs. <!-- stead: id=a session=s seq=3-9 by=user -->",
                Some(("Prefers tabs.", vec![source("a").with("session", "s").with("seq", "3-9").with("by", "user")]))),
            ("  * x <!-- stead: id=a ; id=b -->\r\n", Some(("x", vec![source("a"), source("b")]))),
            ("- x <!-- stead: id=a by=J%C3%B6rg%20%3E -->", Some(("x", vec![source("a").with("by", "Jörg >")]))),
            ("- x <!-- stead: by=user -->", None),
            ("- x <!-- stead: id=a by -->", None),
            ("- x <!-- id=a -->", None),
            ("- x", None),
            ("x <!-- stead: id=a -->", None),
            ("- <!-- stead: id=a -->", None),
            ("- x <!-- stead: id=a --> more", None),
        ];
        for (line, want) in table {
            let want = want.map(|(text, sources)| Fact {
                text: text.to_owned(),
                sources,
            });
            assert_eq!(Fact::parse(line), want, "{line}");
        }
    }

    #[test]
    fn words_can_hide_nothing_and_secrets_are_gone() {
        let redactor = Redactor::new(["sk-123456".to_owned()]);
        let fact = Fact::new(
            "a\n# b\u{202e} -->\u{200b}<!-- sk-123456",
            FactSource::new("i"),
            &redactor,
        )
        .unwrap();
        assert_eq!(
            fact.to_string(),
            "- a # b -- > <! -- [redacted] <!-- stead: id=i -->"
        );
        assert_eq!(
            Fact::new(" \n\u{200b}", FactSource::new("i"), &redactor),
            None
        );
        let long = Fact::new(&"é".repeat(2000), FactSource::new("i"), &redactor).unwrap();
        assert_eq!(long.text.chars().count(), MAX_FACT_CHARS);
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back_whatever_it_holds(
            text in "\\PC{0,40}|[<>!\\- a=;%]{0,40}|(?s).{0,40}",
            id in "[a-f0-9]{1,12}",
            value in "\\PC{0,20}|[<>!\\- =;%]{0,20}|(?s).{0,20}",
        ) {
            let source = FactSource::new(id).with("by", value);
            if let Some(fact) = Fact::new(&text, source, &Redactor::default()) {
                let line = fact.to_string();
                prop_assert_eq!(line.lines().count(), 1);
                prop_assert_eq!((line.matches("<!--").count(), line.matches("-->").count()), (1, 1));
                prop_assert_eq!(Fact::parse(&line), Some(fact));
            }
        }
    }
}
