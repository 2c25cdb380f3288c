//! Everything that the command line prints goes through here.
//!
//! A [`TerminalSink`] writes to one of the two standard streams. If the stream is a terminal, text
//! cannot control it: control characters (ESC, C0, C1, a carriage return that no line feed follows)
//! and marks that reorder text are replaced, whoever wrote them: a model, a tool, a hook, a provider,
//! a file or an error. Only the styles that [`Style`](super::style::Style) adds become escape
//! sequences. A pipe or a file gets the text unchanged.
//!
//! Unlike `println!`, nothing here panics when a pipe is closed or a disk is full.
//!
//! Effects: the terminal.

use super::error::CliError;
use super::style::StyleKey;
use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::{Arguments, Write as _};
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::LazyLock;

static STDOUT: LazyLock<TerminalSink> = LazyLock::new(|| TerminalSink::new(StandardStream::Out));
static STDERR: LazyLock<TerminalSink> = LazyLock::new(|| TerminalSink::new(StandardStream::Err));

#[derive(Debug, Clone, Copy)]
enum StandardStream {
    Out,
    Err,
}

/// A standard stream, and whether it is a terminal.
struct TerminalSink {
    stream: StandardStream,
    is_terminal: bool,
}

impl TerminalSink {
    fn new(stream: StandardStream) -> Self {
        let is_terminal = match stream {
            StandardStream::Out => std::io::stdout().is_terminal(),
            StandardStream::Err => std::io::stderr().is_terminal(),
        };
        Self {
            stream,
            is_terminal,
        }
    }

    /// Writes text. If the stream is a terminal, unsafe characters are replaced.
    fn write(&self, text: Arguments<'_>) -> std::io::Result<()> {
        let text = text
            .as_str()
            .map_or_else(|| Cow::Owned(text.to_string()), Cow::Borrowed);
        let text = if self.is_terminal {
            harmless(&text, StyleKey::of_process())
        } else {
            without_styles(&text, StyleKey::of_process())
        };
        self.write_raw(&text)
    }

    fn write_raw(&self, text: &str) -> std::io::Result<()> {
        match self.stream {
            StandardStream::Out => {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())
            }
            StandardStream::Err => {
                let mut err = std::io::stderr().lock();
                err.write_all(text.as_bytes()).and_then(|()| err.flush())
            }
        }
    }

    /// Empties the current line of a terminal.
    fn clear_line(&self) {
        if self.is_terminal {
            let _ = self.write_raw("\r\x1b[K");
        }
    }
}

/// Returns `text` in a form that is safe for a terminal: styles become escape sequences, and
/// everything else that could control the terminal or reorder text becomes U+FFFD.
fn harmless<'a>(text: &'a str, key: &StyleKey) -> Cow<'a, str> {
    if !text.contains(|c| is_unsafe_char(c) || StyleKey::is_delimiter(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some((code, after)) = key.strip_mark(rest) {
            let _ = write!(shown, "\x1b[{code}m");
            rest = after;
            continue;
        }
        let line_end = c == '\r' && rest[1..].starts_with('\n');
        let bad = (is_unsafe_char(c) && !line_end) || StyleKey::is_delimiter(c);
        shown.push(if bad { char::REPLACEMENT_CHARACTER } else { c });
        rest = &rest[c.len_utf8()..];
    }
    Cow::Owned(shown)
}

/// Returns `text` without the styles that were meant for a terminal.
fn without_styles<'a>(text: &'a str, key: &StyleKey) -> Cow<'a, str> {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(at) = rest.find(StyleKey::is_delimiter) {
        plain.push_str(&rest[..at]);
        let c = rest[at..].chars().next().unwrap_or_default();
        rest = match key.strip_mark(&rest[at..]) {
            Some((_, after)) => after,
            None => {
                plain.push(c);
                &rest[at + c.len_utf8()..]
            }
        };
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

/// Whether a character controls a terminal, or changes the order in which text is shown.
pub(crate) fn is_unsafe_char(c: char) -> bool {
    let controls = c.is_control() && !matches!(c, '\n' | '\t');
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    controls || reorders
}

/// Returns the JSON of `value` on one line. Characters that could control a terminal or reorder
/// text are escaped; to a JSON reader it is the same text.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(value).map_err(anyhow::Error::from)?;
    Ok(escape_json(text))
}

/// Prints a JSON value on a line of its own, escaped as by [`to_json`].
pub(crate) fn out_json(value: &Value) {
    out(format_args!("{}\n", escape_json(value.to_string())));
}

fn escape_json(text: String) -> String {
    // JSON itself is plain ASCII and the encoder escapes C0, so these are only in strings.
    let bad = |c: char| {
        is_unsafe_char(c)
            || matches!(
                c,
                '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
            )
    };
    if !text.contains(bad) {
        return text;
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if bad(c) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

/// Prints to standard output. A reader that has seen enough (`| head`) ends the command quietly;
/// any other failure ends it with a message.
pub(crate) fn out(text: Arguments<'_>) {
    if let Err(error) = try_out(text) {
        if error.kind() != ErrorKind::BrokenPipe {
            err(format_args!(
                "stead: cannot write to standard output: {error}\n"
            ));
            std::process::exit(1);
        }
        std::process::exit(0);
    }
}

/// Prints to standard output and returns whether that was possible.
pub(crate) fn try_out(text: Arguments<'_>) -> std::io::Result<()> {
    STDOUT.write(text)
}

/// Prints to standard error. Failures are ignored.
pub(crate) fn err(text: Arguments<'_>) {
    let _ = STDERR.write(text);
}

/// Empties the current line of standard error, if it is a terminal.
pub(crate) fn clear_status_line() {
    STDERR.clear_line();
}

/// `println!` that does not panic, through the sink of standard output.
macro_rules! outln {
    () => { $crate::cli::print::out(format_args!("\n")) };
    ($($arg:tt)*) => { $crate::cli::print::out(format_args!("{}\n", format_args!($($arg)*))) };
}

/// `eprintln!` that does not panic, through the sink of standard error.
macro_rules! errln {
    ($($arg:tt)*) => { $crate::cli::print::err(format_args!("{}\n", format_args!($($arg)*))) };
}

pub(crate) use {errln, outln};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_harmless_text_and_a_pipe_gets_it_unchanged() {
        let key = StyleKey::of_process();
        let table = [
            ("two lines\n\tand a tab", "two lines\n\tand a tab"),
            (
                "from Windows\r\nand a lone \r",
                "from Windows\r\nand a lone \u{fffd}",
            ),
            (
                "\u{1b}[2J and \u{9b}2J, \r and \u{7}",
                "\u{fffd}[2J and \u{fffd}2J, \u{fffd} and \u{fffd}",
            ),
            ("rm \u{202e}fdp.x\u{2066}", "rm \u{fffd}fdp.x\u{fffd}"),
            ("שלום, 👩\u{200d}💻", "שלום, 👩\u{200d}💻"),
            (
                "a forged mark \u{fdd0}31\u{fdd1}",
                "a forged mark \u{fffd}31\u{fffd}",
            ),
        ];
        for (text, shown) in table {
            assert_eq!(harmless(text, key), shown);
            assert_eq!(without_styles(text, key), text);
        }
    }

    #[test]
    fn only_our_own_styles_become_escape_sequences() {
        let key = StyleKey::of_process();
        let painted = key.paint("31", "bad \u{1b}[2J");
        let text = format!("{painted} and \u{1b}[32mplain");
        assert_eq!(
            harmless(&text, key),
            "\u{1b}[31mbad \u{fffd}[2J\u{1b}[0m and \u{fffd}[32mplain"
        );
        assert_eq!(without_styles(&painted, key), "bad \u{1b}[2J");
    }

    #[test]
    fn json_is_escaped_and_means_the_same() {
        let text = "\u{1b}[2J \u{9b}2J \u{202e}x\u{200f} \u{7f} ü 👩";
        let json = to_json(&text).unwrap();
        assert_eq!(
            json,
            "\"\\u001b[2J \\u009b2J \\u202ex\\u200f \\u007f ü 👩\""
        );
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }
}
