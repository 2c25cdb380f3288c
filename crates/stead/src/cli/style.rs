//! Colour where it helps, plain text when piped.

use super::env::Env;
use std::borrow::Cow;

/// Colours for one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
    terminal: bool,
}

impl Style {
    pub(crate) fn stdout(env: &Env) -> Self {
        Self { colour: env.stdout_is_terminal && env.get("NO_COLOR").is_none(), terminal: env.stdout_is_terminal }
    }

    pub(crate) fn stderr(env: &Env) -> Self {
        Self { colour: env.stderr_is_terminal && env.get("NO_COLOR").is_none(), terminal: env.stderr_is_terminal }
    }

    /// Text from elsewhere as a terminal may be given it: no control character but line ends and tabs,
    /// so that nothing a model or a file says can command the terminal. A pipe gets the text as it is.
    pub(crate) fn safe(self, text: &str) -> Cow<'_, str> {
        let commands = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if self.terminal && text.contains(commands) {
            return Cow::Owned(text.replace(commands, "\u{fffd}"));
        }
        Cow::Borrowed(text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
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
