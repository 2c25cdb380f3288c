//! A command on a pseudo-terminal: keys go in, a screen comes out.
//!
//! Effects: test support.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::num::NonZero;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A command on a terminal that the test controls. The terminal answers the queries that terminal
/// libraries make (cursor position, device attributes). The command is killed when this is dropped.
pub struct Pty {
    master: Arc<File>,
    child: Child,
    seen: Arc<Mutex<PtyScreen>>,
    stop: Arc<AtomicBool>,
    reader: Option<JoinHandle<()>>,
}

struct PtyScreen {
    terminal: vt100::Parser,
    raw: Vec<u8>,
}

impl std::fmt::Debug for Pty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pty")
            .field("pid", &self.child.id())
            .field("screen", &self.screen())
            .finish_non_exhaustive()
    }
}

/// A text of one style on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledText {
    /// The text.
    pub text: String,
    /// The number of its colour; none if it has the colour of the terminal.
    pub foreground: Option<u8>,
    /// Whether it is bold.
    pub is_bold: bool,
}

/// Joins cells of one style.
fn styled_row<'a>(cells: impl Iterator<Item = &'a vt100::Cell>) -> Vec<StyledText> {
    let mut row: Vec<StyledText> = Vec::new();
    for cell in cells.filter(|cell| !cell.is_wide_continuation()) {
        let foreground = match cell.fgcolor() {
            vt100::Color::Idx(number) => Some(number),
            vt100::Color::Default | vt100::Color::Rgb(..) => None,
        };
        let is_bold = cell.bold();
        let text = match cell.contents() {
            "" => " ",
            text => text,
        };
        match row.last_mut() {
            Some(last) if last.foreground == foreground && last.is_bold == is_bold => {
                last.text.push_str(text);
            }
            Some(_) | None => row.push(StyledText {
                text: text.to_owned(),
                foreground,
                is_bold,
            }),
        }
    }
    while let Some(last) = row.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            break;
        }
        row.pop();
    }
    row
}

const POLL_MS: i64 = 20;
/// The shortest query that a program may wait for, and the answer of a terminal.
const DEVICE_ATTRIBUTES: (&[u8], &[u8]) = (b"\x1b[c", b"\x1b[?62;22c");
const CURSOR_POSITION: &[u8] = b"\x1b[6n";
const LONGEST_QUERY_BYTES: usize = 4;

impl Pty {
    /// Starts `command` (with its arguments, directory and variables) on a new controlling
    /// terminal.
    pub fn spawn(command: &Command, rows: u16, columns: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
            .expect("a pseudo-terminal");
        grantpt(&master).expect("grantpt");
        unlockpt(&master).expect("unlockpt");
        let name = ptsname(&master, Vec::new()).expect("ptsname");
        tcsetwinsize(&master, size(rows, columns)).expect("a terminal takes a size");
        let slave = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(rustix::fs::OFlags::NOCTTY.bits().cast_signed())
            .open(Path::new(std::ffi::OsStr::from_bytes(name.as_bytes())))
            .expect("the other side of the terminal");

        let stdio = || Stdio::from(slave.try_clone().expect("a descriptor can be duplicated"));
        let child = on_terminal(command)
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .expect("util-linux has setsid");
        // This end must be closed, or the end of the command would not end the terminal.
        drop(slave);

        let master = Arc::new(File::from(master));
        let seen = Arc::new(Mutex::new(PtyScreen {
            terminal: vt100::Parser::new(some(rows), some(columns), 0),
            raw: Vec::new(),
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let reader = {
            let master = Arc::clone(&master);
            let seen = Arc::clone(&seen);
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || read(&master, &seen, &stop))
        };
        Self {
            master,
            child,
            seen,
            stop,
            reader: Some(reader),
        }
    }

    /// Returns the command's process id, for signals.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends keys, for example `"hello\r"` or `"\x1b[A"`.
    pub fn send(&self, keys: &str) {
        (&*self.master)
            .write_all(keys.as_bytes())
            .expect("the terminal takes keys");
    }

    /// Returns the lines of the screen without trailing blanks.
    pub fn screen(&self) -> String {
        self.with(|seen| seen.terminal.screen().contents())
    }

    /// Returns whether any cell of the screen has a colour.
    pub fn is_coloured(&self) -> bool {
        self.with(|seen| {
            let screen = seen.terminal.screen();
            let (rows, columns) = screen.size();
            let coloured = |cell: &vt100::Cell| {
                cell.fgcolor() != vt100::Color::Default || cell.bgcolor() != vt100::Color::Default
            };
            (0..rows.get()).any(|row| {
                (0..columns.get()).any(|column| screen.cell(row, column).is_some_and(coloured))
            })
        })
    }

    /// Returns the rows of the screen as texts of one style each, without blanks at their ends.
    pub fn styled_rows(&self) -> Vec<Vec<StyledText>> {
        self.with(|seen| {
            let screen = seen.terminal.screen();
            let (rows, columns) = screen.size();
            (0..rows.get())
                .map(|row| {
                    let cells = (0..columns.get()).filter_map(|column| screen.cell(row, column));
                    styled_row(cells)
                })
                .collect()
        })
    }

    /// Returns row and column of the cursor, from 0.
    pub fn cursor(&self) -> (u16, u16) {
        self.with(|seen| seen.terminal.screen().cursor_position())
    }

    /// Returns every byte that the command has written, including text that scrolled off.
    pub fn raw(&self) -> String {
        self.with(|seen| String::from_utf8_lossy(&seen.raw).into_owned())
    }

    /// Waits until the screen shows `text`. Panics with the screen when it takes longer than
    /// `deadline`.
    pub fn wait_for(&self, text: &str, deadline: Duration) {
        self.wait_until(&format!("the text {text:?}"), deadline, |screen| {
            screen.contains(text)
        });
    }

    /// Waits until the screen no longer shows `text`. Panics with the screen when it takes longer
    /// than `deadline`.
    pub fn wait_gone(&self, text: &str, deadline: Duration) {
        self.wait_until(&format!("{text:?} to be gone"), deadline, |screen| {
            !screen.contains(text)
        });
    }

    /// Waits until the screen satisfies `done`; `what` names the condition in the panic at the
    /// deadline.
    pub fn wait_until(&self, what: &str, deadline: Duration, done: impl Fn(&str) -> bool) {
        let end = Instant::now() + deadline;
        loop {
            let screen = self.screen();
            if done(&screen) {
                return;
            }
            assert!(
                Instant::now() < end,
                "waited {deadline:?} for {what}; the screen shows:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Changes the size; the command gets `SIGWINCH`.
    pub fn resize(&self, rows: u16, columns: u16) {
        self.with(|seen| seen.terminal.set_size(some(rows), some(columns)));
        tcsetwinsize(&*self.master, size(rows, columns)).expect("a terminal takes a size");
    }

    /// Waits until the command has ended. Panics with the screen when it takes longer than
    /// `deadline`.
    pub fn wait_exit(&mut self, deadline: Duration) -> ExitStatus {
        let end = Instant::now() + deadline;
        loop {
            if let Some(status) = self.child.try_wait().expect("a child can be waited for") {
                // The last output may not be read yet.
                self.finish_reading();
                return status;
            }
            assert!(
                Instant::now() < end,
                "still running after {deadline:?}; the screen shows:\n{}",
                self.screen()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn with<T>(&self, look: impl FnOnce(&mut PtyScreen) -> T) -> T {
        look(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn finish_reading(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.finish_reading();
    }
}

fn some(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).expect("a terminal has rows and columns")
}

fn size(rows: u16, columns: u16) -> Winsize {
    Winsize {
        ws_row: rows,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    }
}

/// Returns the command as run by `setsid --ctty`: setting the controlling terminal takes a step
/// between fork and exec, which safe Rust cannot do. It calls exec, so the process keeps its id.
fn on_terminal(command: &Command) -> Command {
    let mut through = Command::new("setsid");
    through
        .arg("--ctty")
        .arg(command.get_program())
        .args(command.get_args())
        .env("TERM", "xterm-256color");
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => through.env(name, value),
            None => through.env_remove(name),
        };
    }
    if let Some(dir) = command.get_current_dir() {
        through.current_dir(dir);
    }
    through
}

/// Reads until the terminal ends, or until `stop` is set and nothing more arrives.
fn read(mut master: &File, seen: &Mutex<PtyScreen>, stop: &AtomicBool) {
    let mut buffer = [0; 16 * 1024];
    let wait = Timespec {
        tv_sec: 0,
        tv_nsec: POLL_MS * 1_000_000,
    };
    loop {
        let mut waiting = [PollFd::new(&master, PollFlags::IN)];
        match poll(&mut waiting, Some(&wait)) {
            Ok(0) if stop.load(Ordering::Relaxed) => return,
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        // A terminal whose other side is closed gives EIO rather than an end of file.
        let Ok(n @ 1..) = master.read(&mut buffer) else {
            return;
        };
        let answers = {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.terminal.process(&buffer[..n]);
            let overlap = seen.raw.len().saturating_sub(LONGEST_QUERY_BYTES - 1);
            let known = seen.raw.len();
            seen.raw.extend_from_slice(&buffer[..n]);
            answers(
                &seen.raw[overlap..],
                known - overlap,
                seen.terminal.screen().cursor_position(),
            )
        };
        if master.write_all(&answers).is_err() {
            return;
        }
    }
}

/// Returns the answers to the queries in `bytes` that end after the first `known` bytes.
fn answers(bytes: &[u8], known: usize, (row, column): (u16, u16)) -> Vec<u8> {
    let cursor = format!("\x1b[{};{}R", row + 1, column + 1);
    let mut out = Vec::new();
    for end in known + 1..=bytes.len() {
        let so_far = &bytes[..end];
        if so_far.ends_with(CURSOR_POSITION) {
            out.extend_from_slice(cursor.as_bytes());
        } else if so_far.ends_with(DEVICE_ATTRIBUTES.0) {
            out.extend_from_slice(DEVICE_ATTRIBUTES.1);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEADLINE: Duration = Duration::from_secs(10);

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn keys_go_in_and_the_screen_shows_what_comes_out() {
        let mut pty = Pty::spawn(&Command::new("cat"), 24, 80);
        pty.send("hello\r");
        pty.wait_for("hello\nhello", DEADLINE);
        pty.send("\x04");
        assert!(pty.wait_exit(DEADLINE).success());
    }

    #[test]
    fn the_terminal_controls_the_command_and_has_its_size() {
        let mut command = sh("stty size; tty; echo $WORD; exec sleep 60");
        command.env("WORD", "given").current_dir("/");
        let mut pty = Pty::spawn(&command, 10, 33);
        pty.wait_for("given", DEADLINE);
        assert!(
            pty.screen().starts_with("10 33\n/dev/pts/"),
            "{}",
            pty.screen()
        );
        // Only a controlling terminal turns this key into a signal.
        pty.send("\x03");
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&pty.wait_exit(DEADLINE)),
            Some(2)
        );
    }

    #[test]
    fn cursor_moves_are_interpreted_and_the_raw_bytes_kept() {
        let mut pty = Pty::spawn(&sh(r"printf 'old\033[2J\033[3;5Hnew'"), 6, 20);
        assert!(pty.wait_exit(DEADLINE).success());
        assert_eq!((pty.screen().trim(), pty.cursor()), ("new", (2, 7)));
        assert_eq!(pty.raw(), "old\x1b[2J\x1b[3;5Hnew");
    }

    #[test]
    fn the_cursor_query_is_answered() {
        let script = r"stty raw -echo; printf 'ab\033[6n'; dd bs=1 count=6 2>/dev/null | tr '\033' '^'; stty sane";
        let mut pty = Pty::spawn(&sh(script), 5, 40);
        pty.wait_for("ab^[1;3R", DEADLINE);
        assert!(pty.wait_exit(DEADLINE).success());
    }

    #[test]
    fn a_query_is_answered_once_wherever_the_stream_is_split() {
        let text = b"x\x1b[6ny\x1b[c";
        for split in 0..=text.len() {
            let overlap = split.saturating_sub(LONGEST_QUERY_BYTES - 1);
            let mut said = answers(&text[..split], 0, (0, 0));
            said.extend(answers(&text[overlap..], split - overlap, (0, 0)));
            assert_eq!(said, b"\x1b[1;1R\x1b[?62;22c", "split at {split}");
        }
    }

    #[test]
    fn a_resize_reaches_the_command() {
        let pty = Pty::spawn(
            &sh("trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done"),
            10,
            20,
        );
        pty.wait_for("ready", DEADLINE);
        pty.resize(12, 30);
        pty.wait_for("12 30", DEADLINE);
    }
}
