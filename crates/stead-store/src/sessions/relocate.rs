//! Moving the state of agents to another folder.
//!
//! Each agent's folder is moved by one rename, so at any moment it is whole in one place or in the
//! other, and a move that was interrupted goes on with the agents that are left.
//!
//! Effects: the clock, the local disk (writes).

use super::JOURNAL_SUFFIX;
use super::dirs::{make_durable_dir, modified_ms};
use crate::regular_file::open_regular;
use crate::{Disk, StoreError, open_dir};
use rustix::fs::{AtFlags, FlockOperation, OFlags, RenameFlags};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use stead_core::{AgentId, ChainSum, Entry, decode_line};

/// The maximum length of the first line of a journal.
const MAX_HEADER_BYTES: u64 = 1024 * 1024;
/// The number of journals that are kept locked during the move: the newest, which are the ones that
/// may be in use.
const MAX_LOCKED: usize = 200;
/// How long and how often a journal that is in use is waited for.
const BUSY_PAUSE: Duration = Duration::from_millis(25);
const MAX_BUSY_PAUSES: usize = 40;

/// The agents whose state was moved.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MovedAgents {
    /// The agents, by name.
    pub agents: Vec<AgentId>,
    /// The number of their sessions.
    pub sessions: usize,
    /// The agents that were left, because there is state of the same name already.
    pub left: Vec<AgentId>,
}

/// Returns the agents whose state lies in the folder `agents`, with their journals. Folders without
/// a journal of a session are none.
pub fn agents_in(agents: &Path) -> Vec<(AgentId, Vec<PathBuf>)> {
    if !is_real_dir(agents) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(agents).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(agent) = name.to_str().and_then(|name| AgentId::new(name).ok()) else {
            continue;
        };
        let journals = journals_in(&entry.path());
        // One journal tells whose the folder is.
        if journals.iter().any(|path| is_journal(path)) {
            found.push((agent, journals));
        }
    }
    found.sort_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    found
}

/// Moves the state of all agents in the folder `from` to the folder `to`. Fails without a change if
/// one of their sessions is in use.
pub fn move_agents(disk: &dyn Disk, from: &Path, to: &Path) -> Result<MovedAgents, StoreError> {
    let mut moved = MovedAgents::default();
    for (agent, journals) in agents_in(from) {
        let Some(_locks) = lock_all(&from.join(agent.as_str()), &journals)? else {
            // Another process moved it in the meantime.
            continue;
        };
        let failed = |cause| StoreError::io(from, cause);
        let source = open_dir(from).map_err(failed)?;
        let target = make_durable_dir(disk, to).map_err(|cause| StoreError::io(to, cause))?;
        let name = Path::new(agent.as_str());
        let (old, new) = (source.as_fd(), target.as_fd());
        match disk.rename(old, name, new, name, RenameFlags::NOREPLACE) {
            Ok(()) => {
                disk.sync(&target)
                    .and_then(|()| disk.sync(&source))
                    .map_err(failed)?;
                moved.sessions += journals.len();
                moved.agents.push(agent);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => moved.left.push(agent),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    if !moved.agents.is_empty()
        && let (Some(above), Some(name)) = (from.parent(), from.file_name())
        && let Ok(above) = open_dir(above)
    {
        // It stays if anything else is in it.
        let _ = disk.remove(above.as_fd(), Path::new(name), AtFlags::REMOVEDIR);
    }
    Ok(moved)
}

fn is_real_dir(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir())
}

/// Returns the journals of an agent by their names, the newest first.
fn journals_in(agent: &Path) -> Vec<PathBuf> {
    let sessions = agent.join("sessions");
    if !is_real_dir(agent) || !is_real_dir(&sessions) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(sessions).into_iter().flatten().flatten();
    let mut journals: Vec<(i64, PathBuf)> = entries
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(JOURNAL_SUFFIX))
        .filter_map(|path| Some((modified_ms(&path.symlink_metadata().ok()?), path)))
        .collect();
    journals.sort_by(|a, b| b.cmp(a));
    journals.into_iter().map(|(_, path)| path).collect()
}

/// Whether a file begins as the journal of a session does.
fn is_journal(path: &Path) -> bool {
    let first_line = || -> io::Result<String> {
        let file = open_regular(path, OFlags::RDONLY)?;
        let mut line = String::new();
        BufReader::new(file.take(MAX_HEADER_BYTES)).read_line(&mut line)?;
        Ok(line)
    };
    first_line().is_ok_and(|line| {
        decode_line(line.trim_end(), ChainSum::START)
            .is_ok_and(|line| matches!(line.entry, Entry::Session(_)))
    })
}

/// Locks the journals of an agent, and returns the locks of the newest. Returns `None` if the folder
/// is gone.
fn lock_all(agent: &Path, journals: &[PathBuf]) -> Result<Option<Vec<File>>, StoreError> {
    let mut locks = Vec::new();
    for path in journals {
        let mut pauses = 0;
        loop {
            let file = match open_regular(path, OFlags::RDONLY) {
                Ok(file) => file,
                Err(_) if !agent.exists() => return Ok(None),
                Err(cause) => return Err(StoreError::io(path, cause)),
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    if locks.len() < MAX_LOCKED {
                        locks.push(file);
                    }
                    break;
                }
                Err(_) if pauses < MAX_BUSY_PAUSES => {
                    pauses += 1;
                    std::thread::sleep(BUSY_PAUSE);
                }
                Err(_) => {
                    let text =
                        "its session is in use by another process; end that process and try again";
                    return Err(StoreError::io(path, io::Error::other(text)));
                }
            }
        }
    }
    Ok(Some(locks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FileSessions, OsDisk, Sessions};
    use std::os::fd::BorrowedFd;
    use std::sync::Arc;
    use stead_core::{NewSession, Redactor, SessionId};

    async fn with_session(dir: &Path, agent: &str, session: &str) -> crate::OpenedSession {
        let agent = AgentId::new(agent).unwrap();
        let sessions = FileSessions::new(dir, agent, Arc::new(OsDisk), Redactor::default());
        let id = SessionId::new(session).unwrap();
        sessions.create(&id, NewSession::default()).await.unwrap()
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[tokio::test]
    async fn only_agents_with_journals_are_moved() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("agents");
        let to = temp.path().join(".stead/agents");
        drop(with_session(temp.path(), "main", "one").await);
        drop(with_session(temp.path(), "main", "two").await);
        for (path, text) in [
            ("planner/prompt.md", "the project's own"),
            ("other/sessions/a.log.jsonl", "{\"level\": \"info\"}\n"),
            ("notes.md", "a file"),
        ] {
            let path = from.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let moved = move_agents(&OsDisk, &from, &to).unwrap();
        let expected = MovedAgents {
            agents: vec![AgentId::main()],
            sessions: 2,
            left: Vec::new(),
        };
        assert_eq!(moved, expected);
        assert_eq!(names(&from), ["notes.md", "other", "planner"]);
        assert_eq!(
            names(&to.join("main/sessions"))[..2],
            ["one.log.jsonl", "two.log.jsonl"]
        );
        assert_eq!(
            move_agents(&OsDisk, &from, &to).unwrap(),
            MovedAgents::default(),
            "once"
        );
    }

    /// A disk on which every change from the one with this number on fails, as after a kill.
    #[derive(Debug)]
    struct KilledAt(usize, std::sync::atomic::AtomicUsize);

    impl KilledAt {
        fn pass(&self) -> io::Result<()> {
            match self.1.fetch_add(1, std::sync::atomic::Ordering::SeqCst) < self.0 {
                true => Ok(()),
                false => Err(io::Error::other("killed")),
            }
        }
    }

    impl Disk for KilledAt {
        fn create_dir(&self, dir: BorrowedFd<'_>, name: &Path, mode: u32) -> io::Result<()> {
            self.pass()?;
            OsDisk.create_dir(dir, name, mode)
        }

        fn sync(&self, file: &File) -> io::Result<()> {
            self.pass()?;
            OsDisk.sync(file)
        }

        fn rename(
            &self,
            from_dir: BorrowedFd<'_>,
            from: &Path,
            to_dir: BorrowedFd<'_>,
            to: &Path,
            flags: RenameFlags,
        ) -> io::Result<()> {
            self.pass()?;
            OsDisk.rename(from_dir, from, to_dir, to, flags)
        }

        fn remove(&self, dir: BorrowedFd<'_>, name: &Path, flags: AtFlags) -> io::Result<()> {
            self.pass()?;
            OsDisk.remove(dir, name, flags)
        }
    }

    #[tokio::test]
    async fn a_move_that_is_killed_anywhere_loses_nothing_and_goes_on() {
        let mut kills = 0;
        loop {
            let temp = tempfile::tempdir().unwrap();
            let from = temp.path().join("agents");
            let to = temp.path().join(".stead/agents");
            for agent in ["main", "other"] {
                drop(with_session(temp.path(), agent, "one").await);
            }
            let moved = move_agents(&KilledAt(kills, 0.into()), &from, &to);
            for agent in ["main", "other"] {
                let journal = format!("{agent}/sessions/one.log.jsonl");
                let places = [&from, &to].map(|place| place.join(&journal).exists());
                assert!(places[0] != places[1], "{kills}: {places:?}");
            }
            let rest = move_agents(&OsDisk, &from, &to).unwrap();
            assert_eq!(rest.left, Vec::new());
            assert_eq!(agents_in(&to).len(), 2, "{kills}");
            assert!(agents_in(&from).is_empty(), "{kills}");
            // The removal of the emptied folder is the last change, and may fail.
            if moved.is_ok_and(|moved| moved.agents.len() == 2) && !from.exists() {
                break;
            }
            kills += 1;
        }
        assert!(kills > 5, "{kills}");
    }

    #[tokio::test]
    async fn an_emptied_folder_is_removed_and_state_of_the_same_name_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("agents");
        let home = temp.path().join(".stead");
        let to = home.join("agents");
        drop(with_session(temp.path(), "main", "old").await);
        move_agents(&OsDisk, &from, &to).unwrap();
        assert!(!from.exists());
        drop(with_session(temp.path(), "main", "older").await);
        let moved = move_agents(&OsDisk, &from, &to).unwrap();
        assert_eq!((moved.agents.len(), moved.left), (0, vec![AgentId::main()]));
        assert!(from.join("main/sessions/older.log.jsonl").exists());
        assert!(to.join("main/sessions/old.log.jsonl").exists());
    }

    #[tokio::test]
    async fn nothing_is_moved_while_a_session_is_in_use() {
        let temp = tempfile::tempdir().unwrap();
        let from = temp.path().join("agents");
        let to = temp.path().join(".stead/agents");
        let open = with_session(temp.path(), "main", "one").await;
        let error = move_agents(&OsDisk, &from, &to).unwrap_err().to_string();
        assert!(error.contains("in use by another process"), "{error}");
        assert!(from.join("main").exists() && !to.exists());
        drop(open);
        assert_eq!(move_agents(&OsDisk, &from, &to).unwrap().sessions, 1);
    }
}
