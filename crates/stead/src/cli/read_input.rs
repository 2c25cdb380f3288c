//! The input of `stead run`: the argument, standard input, or both.
//!
//! Effects: the clock, the terminal.

use super::env::ProcessEnv;
use super::error::CliError;
use super::print::errln;
use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use stead::core::{Block, fenced};

/// The longest standard input that is read.
const MAX_INPUT_BYTES: usize = 16 * 1024 * 1024;
/// How long standard input may be silent before a message says that it is waited for.
const SILENCE_TOLD: Duration = Duration::from_secs(1);
/// How long a pipe beside a prompt may stay silent. A program that starts `stead` may have left its
/// own standard input open, and nothing would ever come.
const SILENCE_ALLOWED: Duration = Duration::from_secs(5);

/// An input of `stead run`.
pub(crate) struct RunInput {
    /// What is asked for.
    pub(crate) prompt: String,
    /// What was piped in beside it, ready to follow the prompt. `@path` in it attaches nothing.
    pub(crate) attachment: Option<Block>,
}

impl RunInput {
    /// Reads the input: the argument and what is piped in beside it, or standard input alone.
    pub(crate) fn read(env: &ProcessEnv, argument: Option<&str>) -> Result<Self, CliError> {
        let input = match (argument, env.stdin_is_terminal) {
            (Some("-") | None, true) => {
                return Err(CliError::usage(
                    "the input is missing: stead run \"…\", or pipe it in",
                ));
            }
            (Some("-") | None, false) => Self {
                prompt: PipedInput::start()
                    .read(Patience::Endless)?
                    .unwrap_or_default(),
                attachment: None,
            },
            (Some(prompt), true) => Self {
                prompt: prompt.to_owned(),
                attachment: None,
            },
            (Some(prompt), false) => Self {
                prompt: prompt.to_owned(),
                attachment: PipedInput::start()
                    .read(Patience::Limited)?
                    .filter(|text| !text.trim().is_empty())
                    .map(|text| attachment(&text)),
            },
        };
        if input.prompt.trim().is_empty() {
            return Err(CliError::usage("the input is empty"));
        }
        Ok(input)
    }
}

fn attachment(piped: &str) -> Block {
    let text = piped.strip_suffix('\n').unwrap_or(piped);
    Block::text(format!("Standard input:\n{}", fenced("", text)))
}

/// Whether nothing may come for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    Endless,
    Limited,
}

/// Standard input, read by a thread of its own: a read cannot be given up.
struct PipedInput {
    pieces: Receiver<std::io::Result<Vec<u8>>>,
}

impl PipedInput {
    /// Starts to read. The thread ends with the input, or with the process.
    fn start() -> Self {
        let (send, pieces) = sync_channel(4);
        std::thread::spawn(move || {
            let mut stdin = std::io::stdin().lock();
            let mut buffer = vec![0; 64 * 1024];
            loop {
                let piece = stdin.read(&mut buffer).map(|n| buffer[..n].to_vec());
                let is_last = !matches!(&piece, Ok(piece) if !piece.is_empty());
                if send.send(piece).is_err() || is_last {
                    return;
                }
            }
        });
        Self { pieces }
    }

    /// Returns the whole input, or `None` if nothing came.
    fn read(self, patience: Patience) -> Result<Option<String>, CliError> {
        let mut bytes = Vec::new();
        let mut waited = Duration::ZERO;
        loop {
            match self.pieces.recv_timeout(SILENCE_TOLD) {
                Ok(piece) => {
                    let piece = piece?;
                    if piece.is_empty() {
                        break;
                    }
                    bytes.extend(piece);
                    if bytes.len() > MAX_INPUT_BYTES {
                        return Err(CliError::usage(format!(
                            "standard input has more than {} MiB: save it as a file of the \
                             workspace and name it",
                            MAX_INPUT_BYTES / (1024 * 1024)
                        )));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    if waited.is_zero() {
                        errln!("reading standard input …");
                    }
                    waited += SILENCE_TOLD;
                    if bytes.is_empty()
                        && patience == Patience::Limited
                        && waited >= SILENCE_ALLOWED
                    {
                        errln!(
                            "nothing came from standard input, so it is left out; `</dev/null` \
                             avoids the wait"
                        );
                        return Ok(None);
                    }
                }
            }
        }
        text_of(bytes).map(Some)
    }
}

/// Returns the bytes as text. Others than text are refused with their place.
fn text_of(bytes: Vec<u8>) -> Result<String, CliError> {
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        return Err(CliError::usage(format!(
            "standard input is no text: byte {at} is NUL; save it as a file of the workspace and \
             name it"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let byte = error.as_bytes().get(at).copied().unwrap_or_default();
        CliError::usage(format!(
            "standard input is no UTF-8 text: byte {at} is 0x{byte:02x}; convert it, for example \
             with `iconv -t utf-8`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_text_is_an_input_and_the_place_of_the_first_other_byte_is_told() {
        assert_eq!(text_of("é".into()).unwrap(), "é");
        let refused = |bytes: &[u8]| text_of(bytes.to_vec()).unwrap_err().to_string();
        assert!(refused(b"ab\xff").contains("byte 2 is 0xff"));
        assert!(refused(b"a\0").contains("byte 1 is NUL"));
    }

    #[test]
    fn what_is_piped_in_stands_in_a_fence_that_it_cannot_close() {
        assert_eq!(
            attachment("a\n```\nb\n"),
            Block::text("Standard input:\n````\na\n```\nb\n````")
        );
    }
}
