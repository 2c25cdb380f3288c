//! The terminal under `stead chat`: taken over while it runs, and restored on every exit.
//!
//! Effects: in-process state, the clock, the terminal.

use crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, event, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the reading thread checks whether the receiver still exists.
const POLL: Duration = Duration::from_millis(100);
const MAX_WAITING_KEYS: usize = 256;

/// The terminal in raw mode on its alternate screen, until dropped.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        restore_on_panic();
        enable_raw_mode()?;
        // From here on, an error must undo what was done so far.
        let undo = RestoreGuard;
        // Without the flag, Shift-Enter is Enter; terminals that do not know it ignore it.
        let flags =
            PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES);
        execute!(
            io::stdout(),
            EnterAlternateScreen,
            EnableBracketedPaste,
            flags
        )?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        std::mem::forget(undo);
        Ok(Self { terminal })
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

struct RestoreGuard;

impl Drop for RestoreGuard {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. Every step is tried, even if an earlier one fails.
fn restore() {
    let _ = execute!(
        io::stdout(),
        PopKeyboardEnhancementFlags,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
}

/// Restores the terminal before a panic of this thread is printed, so that the message is readable.
/// Panics of other threads (such as those of tools) are handled where they are caught, and must not
/// be printed over the screen.
fn restore_on_panic() {
    let ours = std::thread::current().id();
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().id() == ours {
            restore();
            print(panic);
        }
    }));
}

/// Returns a receiver of key events. A dedicated thread reads them until the receiver is dropped.
pub(super) fn read_keys() -> mpsc::Receiver<io::Result<Event>> {
    let (sender, receiver) = mpsc::channel(MAX_WAITING_KEYS);
    std::thread::spawn(move || {
        while !sender.is_closed() {
            let read = match event::poll(POLL) {
                Ok(false) => continue,
                Ok(true) => event::read(),
                Err(error) => Err(error),
            };
            let failed = read.is_err();
            if sender.blocking_send(read).is_err() || failed {
                return;
            }
        }
    });
    receiver
}
