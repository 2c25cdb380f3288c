//! Colour where it helps, plain text when piped.

use super::env::ProcessEnv;
use std::borrow::Cow;

/// Colours for one stream.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colour: bool,
    terminal: bool,
}

impl Style {
    pub(crate) fn stdout(env: &ProcessEnv) -> Self {
        Self {
            colour: env.stdout_is_terminal && env.get("NO_COLOR").is_none(),
            terminal: env.stdout_is_terminal,
        }
    }

    pub(crate) fn stderr(env: &ProcessEnv) -> Self {
        Self {
            colour: env.stderr_is_terminal && env.get("NO_COLOR").is_none(),
            terminal: env.stderr_is_terminal,
        }
    }

    /// Text from elsewhere as a terminal may be given it: nothing a model or a file says can
    /// command the terminal, or be read there as something else. A pipe gets the text as it is.
    pub(crate) fn sanitize(self, text: &str) -> Cow<'_, str> {
        if self.terminal && text.contains(is_unsafe_char) {
            return Cow::Owned(text.replace(is_unsafe_char, "\u{fffd}"));
        }
        Cow::Borrowed(text)
    }

    fn paint(self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\x1b[{code}m{text}\x1b[0m")
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

/// Whether a character commands a terminal, or makes it show what follows in another order.
pub(crate) fn is_unsafe_char(c: char) -> bool {
    let commands = c.is_control() && !matches!(c, '\n' | '\t');
    let reorders = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    commands || reorders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_neither_commanded_nor_deceived_and_a_pipe_gets_what_there_is() {
        let terminal = Style {
            colour: false,
            terminal: true,
        };
        let table = [
            ("two lines\n\tand a tab", "two lines\n\tand a tab"),
            (
                "\u{1b}[2J and \u{9b}2J, \r and \u{7}",
                "\u{fffd}[2J and \u{fffd}2J, \u{fffd} and \u{fffd}",
            ),
            ("rm \u{202e}fdp.x\u{2066}", "rm \u{fffd}fdp.x\u{fffd}"),
            ("שלום, 👩\u{200d}💻", "שלום, 👩\u{200d}💻"),
        ];
        for (text, shown) in table {
            assert_eq!(terminal.sanitize(text), shown);
            assert_eq!(
                Style {
                    colour: false,
                    terminal: false
                }
                .sanitize(text),
                text
            );
        }
    }
}
