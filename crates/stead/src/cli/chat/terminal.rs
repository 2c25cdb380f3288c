//! The terminal under `stead chat`: taken over while it runs, and restored on every exit.
//!
//! Effects: the clock, the terminal.

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange, Event,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use crossterm::{cursor, event, execute};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::io::{self, Stdout, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// How often the reading thread checks whether the receiver still exists.
const POLL: Duration = Duration::from_millis(100);
/// How often a pause is looked for, on both sides.
const PAUSE_CHECK: Duration = Duration::from_millis(10);
const MAX_WAITING_KEYS: usize = 256;

/// The terminal in raw mode on its alternate screen, until dropped.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        restore_on_panic();
        // From here on, an error must undo what was done so far.
        let undo = RestoreGuard;
        take_over()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        std::mem::forget(undo);
        Ok(Self { terminal })
    }

    /// Calls the person back: the bell, and a notification where the terminal shows them (OSC 9).
    /// `words` are fixed words of this program.
    pub(super) fn notify(&mut self, words: &str) -> io::Result<()> {
        let mut out = io::stdout();
        write!(out, "\x07\x1b]9;{words}\x07")?;
        out.flush()
    }

    /// Gives the terminal to another program.
    pub(super) fn leave(&mut self) -> io::Result<()> {
        restore();
        Ok(())
    }

    /// Takes the terminal over again.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        take_over()?;
        self.terminal.clear()
    }
}

fn take_over() -> io::Result<()> {
    enable_raw_mode()?;
    // Without the flag, Shift-Enter is Enter; terminals that do not know it ignore it.
    let flags = PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES);
    execute!(
        io::stdout(),
        EnterAlternateScreen,
        EnableBracketedPaste,
        EnableFocusChange,
        flags
    )
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
        DisableFocusChange,
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

/// The keys of the terminal. A thread of their own reads them until this is dropped.
pub(super) struct KeyReader {
    receiver: mpsc::Receiver<io::Result<Event>>,
    pause: Arc<PauseFlags>,
}

/// Whether the keys are left to another program.
#[derive(Debug, Default)]
struct PauseFlags {
    wanted: AtomicBool,
    reached: AtomicBool,
}

impl KeyReader {
    pub(super) fn start() -> Self {
        let (sender, receiver) = mpsc::channel(MAX_WAITING_KEYS);
        let pause = Arc::new(PauseFlags::default());
        let flags = pause.clone();
        std::thread::spawn(move || read_keys(&sender, &flags));
        Self { receiver, pause }
    }

    /// Returns the next key.
    pub(super) async fn recv(&mut self) -> Option<io::Result<Event>> {
        self.receiver.recv().await
    }

    pub(super) fn is_closed(&self) -> bool {
        self.receiver.is_closed()
    }

    /// Leaves the keys to another program from now on.
    pub(super) async fn pause(&self) {
        self.pause.wanted.store(true, Ordering::SeqCst);
        while !self.pause.reached.load(Ordering::SeqCst) && !self.is_closed() {
            tokio::time::sleep(PAUSE_CHECK).await;
        }
    }

    pub(super) fn resume(&self) {
        self.pause.wanted.store(false, Ordering::SeqCst);
    }
}

fn read_keys(sender: &mpsc::Sender<io::Result<Event>>, pause: &PauseFlags) {
    while !sender.is_closed() {
        let is_paused = pause.wanted.load(Ordering::SeqCst);
        pause.reached.store(is_paused, Ordering::SeqCst);
        if is_paused {
            std::thread::sleep(PAUSE_CHECK);
            continue;
        }
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
}
