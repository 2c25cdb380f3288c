//! Long texts as they are shown to a model: where the text is stored, and its two ends.
//!
//! Effects: none.

use crate::files::{GREP_FILES, READ_FILE};
use crate::{Registry, Surface, ToolIdentity};
use stead_vfs::VPath;

/// The most lines of each end.
const MAX_LINES: usize = 20;
/// The most characters of each end.
const MAX_CHARS: usize = 2_000;

/// The tools with which a model can read the rest, under the names it knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadTools {
    surface: Surface,
    read: Option<&'static str>,
    grep: Option<&'static str>,
}

impl ReadTools {
    /// Returns those that are among `tools`, as `surface` names them.
    pub fn available_in(tools: &Registry, surface: Surface) -> Self {
        let named = |tool: &ToolIdentity| tools.find(tool.name).map(|_| surface.name(tool));
        Self {
            surface,
            read: named(&READ_FILE),
            grep: named(&GREP_FILES),
        }
    }

    /// Describes how to continue after `lines` lines.
    fn hint(&self, lines: u64) -> String {
        let offset = self.surface.offset(lines);
        match (self.read, self.grep) {
            (Some(read), Some(grep)) => {
                format!(
                    "; {read} with offset={offset} goes on where the beginning stops, {grep} with that path searches it"
                )
            }
            (Some(read), None) => {
                format!("; {read} with offset={offset} goes on where the beginning stops")
            }
            (None, Some(grep)) => format!("; {grep} with that path searches it"),
            (None, None) => String::new(),
        }
    }
}

/// How much of a text was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredExtent<'a> {
    /// All of it, in this file.
    All(&'a VPath),
    /// Its beginning: this many bytes in this file.
    Part(&'a VPath, u64),
    /// Nothing but the ends that are shown.
    Nothing,
}

/// The kind of a long text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreviewKind {
    /// The result of a tool.
    Output,
    /// A message of a person.
    Message,
}

/// The two ends of a text, and how long it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preview<'a> {
    noun: PreviewKind,
    bytes: u64,
    lines: u64,
    /// Its beginning and its end; none if it is not text.
    ends: Option<(&'a str, &'a str)>,
}

impl<'a> Preview<'a> {
    /// A preview of a whole text that is not longer than a text of `limit_tokens`.
    pub fn of(noun: PreviewKind, text: &'a str, limit_tokens: u64) -> Self {
        let limit = usize::try_from(limit_tokens).unwrap_or(MAX_CHARS);
        // The ends never meet. A text whose characters have many tokens each has few characters.
        let chars = MAX_CHARS.min(limit).min(text.len() / 16).max(1);
        let ends = Some((head(text, chars), tail(text, chars)));
        Self {
            noun,
            bytes: text.len() as u64,
            lines: count_lines(text.as_bytes()),
            ends,
        }
    }

    /// A preview of a text with this many bytes and lines, of which only the parts around its two
    /// ends are available.
    pub(crate) fn of_ends(bytes: u64, lines: u64, around: Option<(&'a str, &'a str)>) -> Self {
        let ends = around.map(|(start, end)| (head(start, MAX_CHARS), tail(end, MAX_CHARS)));
        Self {
            noun: PreviewKind::Output,
            bytes,
            lines,
            ends,
        }
    }

    /// Describes a text that is stored in the file `path` to a model.
    pub fn render_stored(&self, path: &VPath, readers: &ReadTools) -> String {
        self.render(StoredExtent::All(path), readers, "")
    }

    /// Describes a text that is not stored to a model, with the reason.
    pub fn render_unstored(&self, why: &str) -> String {
        self.render(StoredExtent::Nothing, &ReadTools::default(), why)
    }

    pub(crate) fn render(&self, kept: StoredExtent<'_>, readers: &ReadTools, why: &str) -> String {
        let Self {
            bytes, lines, ends, ..
        } = self;
        let noun = match self.noun {
            PreviewKind::Output => "output",
            PreviewKind::Message => "message",
        };
        let lines = if *lines == 1 {
            "1 line".to_owned()
        } else {
            format!("{lines} lines")
        };
        let shown = ends.map_or(0, |(head, _)| {
            head.bytes().filter(|&byte| byte == b'\n').count() as u64
        });
        let hint = if ends.is_some() {
            readers.hint(shown)
        } else {
            String::new()
        };
        let note = match kept {
            StoredExtent::All(path) => {
                format!("The {noun} has {bytes} bytes in {lines}. All of it is in {path}{hint}.")
            }
            StoredExtent::Part(path, held) => format!(
                "The {noun} has {bytes} bytes in {lines}. Its first {held} bytes are in {path}{hint}. The rest is lost: {why}."
            ),
            StoredExtent::Nothing => {
                format!("The {noun} has {bytes} bytes in {lines}. Only its ends are shown: {why}.")
            }
        };
        match ends {
            Some((head, tail)) => {
                let between = bytes.saturating_sub((head.len() + tail.len()) as u64);
                let end = if head.ends_with('\n') { "" } else { "\n" };
                match self.noun {
                    // A person's message begins with their own words.
                    PreviewKind::Message => {
                        format!("{head}{end}[… {between} bytes … {note}]\n{tail}")
                    }
                    PreviewKind::Output => {
                        format!("[{note}]\n{head}{end}[… {between} bytes …]\n{tail}")
                    }
                }
            }
            None => format!("[{note} It is binary data, which cannot be shown.]"),
        }
    }
}

/// Counts the lines of a text, including a last one without a line end.
fn count_lines(text: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', text).count() as u64;
    ends + u64::from(text.last().is_some_and(|&byte| byte != b'\n'))
}

/// Returns the first lines, or the beginning of a line that is too long to be shown whole.
fn head(text: &str, chars: usize) -> &str {
    let limit = text
        .char_indices()
        .nth(chars)
        .map_or(text.len(), |(at, _)| at);
    let mut end = 0;
    for line in text[..limit].split_inclusive('\n').take(MAX_LINES) {
        if !line.ends_with('\n') && limit < text.len() && end > limit / 2 {
            break;
        }
        end += line.len();
    }
    &text[..end]
}

/// Returns the last lines, or the end of a line that is too long to be shown whole.
fn tail(text: &str, chars: usize) -> &str {
    let limit = text
        .char_indices()
        .rev()
        .nth(chars.saturating_sub(1))
        .map_or(0, |(at, _)| at);
    let shown = &text[limit..];
    let is_cut = limit > 0 && !text[..limit].ends_with('\n');
    let mut start = text.len();
    for line in shown.split_inclusive('\n').rev().take(MAX_LINES) {
        let is_first = start - line.len() == limit;
        if is_first && is_cut && text.len() - start > shown.len() / 2 {
            break;
        }
        start -= line.len();
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn numbered(lines: std::ops::RangeInclusive<usize>) -> String {
        lines.map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn a_preview_says_where_the_text_is_and_how_to_read_on() {
        let text = numbered(1..=1000);
        let path = VPath::parse("agents/main/offload/s/c1.txt").unwrap();
        let first = numbered(1..=20);
        let last = numbered(981..=1000);
        let tools = Registry::new(crate::file_tools()).unwrap();
        let only_read = tools.retain(|name| name == "read_file");
        let cases = [
            (
                ReadTools::available_in(&tools, Surface::Snake),
                "; read_file with offset=20 goes on where the beginning stops, grep_files with that path searches it",
            ),
            (
                ReadTools::available_in(&tools, Surface::Title),
                "; Read with offset=21 goes on where the beginning stops, Grep with that path searches it",
            ),
            (
                ReadTools::available_in(&only_read, Surface::Snake),
                "; read_file with offset=20 goes on where the beginning stops",
            ),
            (ReadTools::default(), ""),
        ];
        for (readers, hint) in cases {
            let shown =
                Preview::of(PreviewKind::Output, &text, 20_000).render_stored(&path, &readers);
            let want = format!(
                "[The output has 8893 bytes in 1000 lines. All of it is in agents/main/offload/s/c1.txt{hint}.]\n\
                 {first}[… {} bytes …]\n{last}",
                8893 - first.len() - last.len()
            );
            assert_eq!(shown, want);
        }
        let message =
            Preview::of(PreviewKind::Message, &text, 20_000).render_unstored("there is no room");
        let note =
            "The message has 8893 bytes in 1000 lines. Only its ends are shown: there is no room.";
        let between = 8893 - first.len() - last.len();
        assert_eq!(
            message,
            format!("{first}[… {between} bytes … {note}]\n{last}")
        );
    }

    #[test]
    fn ends_are_cut_at_lines_where_lines_are_short_and_at_characters_elsewhere() {
        let x = "x".repeat(5000);
        let y = "é".repeat(5000);
        let short_then_long = format!("a\n{x}");
        let long_then_short = format!("{y}\nb");
        let many = format!("{}\n", "z".repeat(150)).repeat(40);
        let cases: [(&str, &str, &str, &str); 5] = [
            ("one long line", &x, &x[..2000], &x[..2000]),
            ("characters stay whole", &y, &y[..4000], &y[..4000]),
            (
                "a long line after a short one",
                &short_then_long,
                &short_then_long[..2000],
                &x[..2000],
            ),
            (
                "a long line before a short one",
                &long_then_short,
                &y[..4000],
                &long_then_short[10_000 - 2 * 1998..],
            ),
            (
                "whole lines within the limit",
                &many,
                &many[..151 * 13],
                &many[..151 * 13],
            ),
        ];
        for (name, text, first, last) in cases {
            assert_eq!(
                (head(text, MAX_CHARS), tail(text, MAX_CHARS)),
                (first, last),
                "{name}"
            );
        }
    }

    proptest! {
        #[test]
        fn the_ends_are_those_of_the_text_and_never_overlap(text in "[a-zé日\u{1f600}\n]{16,3000}", limit in 1u64..3000) {
            let preview = Preview::of(PreviewKind::Output, &text, limit);
            let (head, tail) = preview.ends.unwrap();
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(!head.is_empty() && !tail.is_empty());
            prop_assert!(head.len() + tail.len() <= text.len());
            prop_assert!(head.chars().count() <= MAX_CHARS && tail.chars().count() <= MAX_CHARS);
            prop_assert_eq!(preview.lines, text.lines().count() as u64);
        }
    }
}
