//! What the person does beside the run: commands of their own (`!command`), and the input in their
//! own editor.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), hooks, tools, processes.

use super::super::terminal::{KeyReader, Screen};
use super::super::transcript::{CallStage, Tone};
use super::App;
use crate::cli::error::CliError;
use crate::cli::external_editor::{editor_command, private_copy, run_editor};
use serde_json::json;
use stead::agent::{ApprovalPolicy, SessionlessResult};
use stead::core::{Block, fenced};
use stead::tools::builtin::EXECUTE;
use tokio_util::sync::CancellationToken;

/// The most bytes of the output of a command that the model is shown.
const MAX_OUTPUT_BYTES: usize = 32 * 1024;

/// A command of the person that has ended.
pub(super) struct EndedCommand {
    id: String,
    line: String,
    result: SessionlessResult,
    ms: u64,
}

impl App<'_> {
    /// Runs a command of the person through the gate. Rules that deny it hold; nobody is asked.
    pub(super) fn run_own_command(&mut self, line: String) {
        self.own_command_count += 1;
        let id = format!("!{}", self.own_command_count);
        let args = json!({ "command": line });
        let running = CallStage::Running(String::new());
        self.chat.show_own_command(&id, &args, running);
        let agent = self.agent.clone();
        let cancel = CancellationToken::new();
        self.own_command_cancel = cancel.clone();
        self.chat.own_commands += 1;
        self.own_commands.spawn(async move {
            let begun = std::time::Instant::now();
            let calls = agent.sessionless();
            let result = calls
                .call_tool(EXECUTE.name, args, &ApprovalPolicy::ApproveAll, cancel)
                .await;
            EndedCommand {
                id,
                line,
                result,
                ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
            }
        });
    }

    /// Stops the commands of the person that run.
    pub(super) fn stop_own_commands(&mut self) {
        self.own_command_cancel.cancel();
    }

    /// Shows the result of a command, and keeps it for the next input.
    pub(super) fn on_own_command(&mut self, ended: EndedCommand) {
        let EndedCommand {
            id,
            line,
            result,
            ms,
        } = ended;
        self.chat.own_commands = self.chat.own_commands.saturating_sub(1);
        let texts = result.content.iter().filter_map(Block::as_text);
        let text = texts.collect::<Vec<_>>().join("\n");
        let stage = CallStage::Ended {
            end: result.status.shown(result.exit_code),
            preview: text.clone(),
            diff: None,
            ms: Some(ms),
        };
        let args = json!({ "command": line });
        self.chat.show_own_command(&id, &args, stage);
        self.own_results.push(command_block(&line, &text));
    }

    /// Lets the person edit the input in their own editor.
    pub(super) async fn edit_input(
        &mut self,
        screen: &mut Screen,
        keys: &KeyReader,
    ) -> Result<(), CliError> {
        let editor = editor_command(self.env)?;
        let text = self.chat.whole_input();
        let copy = private_copy(self.env, "input.md", text.as_bytes())?;
        keys.pause().await;
        screen.leave()?;
        let edited = run_editor(&editor, &copy).await;
        screen.enter()?;
        keys.resume();
        let edited = String::from_utf8_lossy(&edited?).into_owned();
        std::fs::remove_file(&copy)?;
        self.chat.replace_input(edited.trim_end_matches('\n'));
        Ok(())
    }

    /// Keeps an input for later chats.
    pub(super) fn remember_input(&mut self, input: &str) {
        if let Err(error) = self.history.add(input)
            && !std::mem::replace(&mut self.history_failed, true)
        {
            let text = format!("the history of inputs cannot be written: {error}");
            self.chat.note(Tone::Warning, text);
        }
    }
}

/// Returns a command of the person and its output for the model.
fn command_block(line: &str, output: &str) -> Block {
    let from = output.len().saturating_sub(MAX_OUTPUT_BYTES);
    let from = output.ceil_char_boundary(from);
    let cut = match from {
        0 => String::new(),
        left_out => format!("(the first {left_out} bytes are left out)\n"),
    };
    Block::text(format!(
        "Command that the person ran: {line}\n{cut}{}",
        fenced("", output[from..].trim_end())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_shown_the_command_and_the_end_of_a_long_output() {
        assert_eq!(
            command_block("ls", "[exit code 0]\na\n"),
            Block::text("Command that the person ran: ls\n```\n[exit code 0]\na\n```")
        );
        let long = "é".repeat(MAX_OUTPUT_BYTES);
        let block = command_block("cat x", &long);
        let text = block.as_text().unwrap();
        assert!(text.len() < MAX_OUTPUT_BYTES + 200, "{}", text.len());
        assert!(
            text.contains("(the first 32768 bytes are left out)"),
            "{}",
            &text[..200]
        );
    }
}
