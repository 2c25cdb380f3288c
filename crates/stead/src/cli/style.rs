//! Styles of printed text: colour where it helps, plain text when piped.
//!
//! Effects: randomness.

use super::env::ProcessEnv;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The styles of one stream. Text that they paint carries marks which only the sink of
/// [`print`](super::print) turns into escape sequences.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    /// A style without colours.
    pub(crate) fn plain() -> Self {
        Self { colour: false }
    }

    pub(crate) fn stdout(env: &ProcessEnv) -> Self {
        Self {
            colour: env.stdout_is_terminal && env.get("NO_COLOR").is_none(),
        }
    }

    pub(crate) fn stderr(env: &ProcessEnv) -> Self {
        Self {
            colour: env.stderr_is_terminal && env.get("NO_COLOR").is_none(),
        }
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            StyleKey::of_process().paint(code, text)
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.paint("2", text)
    }

    pub(crate) fn bold(self, text: &str) -> String {
        self.paint("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.paint("32", text)
    }

    pub(crate) fn warn(self, text: &str) -> String {
        self.paint("33", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.paint("31", text)
    }

    pub(crate) fn accent(self, text: &str) -> String {
        self.paint("36", text)
    }
}

/// The secret of this process that distinguishes the marks of its own styles from text that looks
/// like them. No other text can contain it.
pub(crate) struct StyleKey(String);

/// Characters that no text uses: Unicode reserves them for use inside a program.
const MARK_START: char = '\u{fdd0}';
const MARK_END: char = '\u{fdd1}';

static PROCESS_KEY: LazyLock<StyleKey> =
    LazyLock::new(|| StyleKey(format!("{:016x}", RandomState::new().hash_one("style"))));

impl StyleKey {
    pub(crate) fn of_process() -> &'static Self {
        &PROCESS_KEY
    }

    /// Returns `text` between the marks of the style `code`.
    pub(crate) fn paint(&self, code: &str, text: &str) -> String {
        let key = &self.0;
        format!("{MARK_START}{key}{code}{MARK_END}{text}{MARK_START}{key}0{MARK_END}")
    }

    /// Returns the code of the mark that `text` begins with, and the text after it.
    pub(crate) fn strip_mark<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        let rest = text
            .strip_prefix(MARK_START)?
            .strip_prefix(self.0.as_str())?;
        let (code, after) = rest.split_once(MARK_END)?;
        let is_code = !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_digit());
        is_code.then_some((code, after))
    }

    /// Whether `c` begins or ends a mark.
    pub(crate) fn is_delimiter(c: char) -> bool {
        matches!(c, MARK_START | MARK_END)
    }
}
