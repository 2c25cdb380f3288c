//! Colour where it helps, plain text when piped.

use super::env::Env;

/// Colours for one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
}

impl Style {
    pub(crate) fn stdout(env: &Env) -> Self {
        Self { colour: env.stdout_is_terminal && env.get("NO_COLOR").is_none() }
    }

    pub(crate) fn stderr(env: &Env) -> Self {
        Self { colour: env.stderr_is_terminal && env.get("NO_COLOR").is_none() }
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
