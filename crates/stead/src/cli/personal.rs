//! The person's configuration folder: their settings, their keys, and the folders they decided
//! about.
//!
//! Effects: randomness, the local disk (writes).

use super::env::ProcessEnv;
use super::error::{CliError, finding_line};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use stead::agent::{GrantKey, GrantKeys};
use stead::model::providers;
use stead::store::{Disk, OsDisk, open_dir};
use stead::workspace::{PersonalSettings, TrustRecord};

/// The settings.
const SETTINGS_FILE: &str = "config.yaml";
/// The folder of keys, one file for each provider.
const KEYS_DIR: &str = "keys";
/// The folder of decisions about folders, one file for each.
const TRUSTED_DIR: &str = "trusted";
/// The folder of the key for grants, and its file.
const GRANT_KEY_DIR: &str = "grants";
const GRANT_KEY_FILE: &str = "key";
/// The maximum size of each file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The maximum number of files in a folder.
const MAX_FILES: usize = 10_000;

/// The person's configuration folder. It need not exist.
#[derive(Debug, Clone)]
pub(crate) struct PersonalFolder {
    dir: Option<PathBuf>,
}

impl PersonalFolder {
    pub(crate) fn new(env: &ProcessEnv) -> Self {
        Self { dir: env.config() }
    }

    /// Returns the path of the folder, as far as it exists without links.
    pub(crate) fn real_path(&self) -> Option<PathBuf> {
        let dir = self.dir.as_ref()?;
        let mut above = dir.ancestors();
        above.find_map(|above| {
            let rest = dir.strip_prefix(above).ok()?;
            Some(above.canonicalize().ok()?.join(rest))
        })
    }

    fn dir(&self) -> Result<&Path, CliError> {
        let missing =
            || CliError::usage("there is no configuration folder: set HOME or XDG_CONFIG_HOME");
        self.dir.as_deref().ok_or_else(missing)
    }

    /// Returns the person's settings.
    pub(crate) fn settings(&self, env: &ProcessEnv) -> Result<PersonalSettings, CliError> {
        let Some(path) = self.dir.as_ref().map(|dir| dir.join(SETTINGS_FILE)) else {
            return Ok(PersonalSettings::default());
        };
        let Some(text) = read_file(&path)? else {
            return Ok(PersonalSettings::default());
        };
        let file = path.display().to_string();
        let parsed = PersonalSettings::parse(&file, &text, &|name| env.get(name));
        parsed.map_err(|findings| {
            let lines: Vec<String> = findings.iter().map(finding_line).collect();
            CliError::usage(lines.join("\n"))
        })
    }

    /// Returns the stored keys by the name of the provider.
    pub(crate) fn keys(&self) -> Result<BTreeMap<&'static str, String>, CliError> {
        let mut keys = BTreeMap::new();
        for path in self.list(KEYS_DIR)? {
            let name = path.file_name().and_then(|name| name.to_str());
            let provider = providers().iter().find(|known| Some(known.name) == name);
            if let Some(provider) = provider {
                require_private(&path)?;
                let key = read_file(&path)?.map(|key| key.trim().to_owned());
                keys.extend(key.map(|key| (provider.name, key)));
            }
        }
        Ok(keys)
    }

    /// Stores the key of a provider.
    pub(crate) fn store_key(&self, provider: &str, key: &str) -> Result<(), CliError> {
        self.write_private(KEYS_DIR, provider, key.as_bytes())
    }

    /// Removes the key of a provider. Returns whether there was one.
    pub(crate) fn remove_key(&self, provider: &str) -> Result<bool, CliError> {
        self.remove(KEYS_DIR, provider)
    }

    /// Returns the decision about the folder at the real path `path`.
    pub(crate) fn decision(&self, path: &Path) -> Result<Option<TrustRecord>, CliError> {
        let Some(dir) = &self.dir else {
            return Ok(None);
        };
        let file = dir.join(TRUSTED_DIR).join(TrustRecord::file_name(path));
        let record = read_record(&file)?;
        Ok(record.filter(|record| record.path == path))
    }

    /// Returns all decisions, sorted by path.
    pub(crate) fn decisions(&self) -> Result<Vec<TrustRecord>, CliError> {
        let mut records = Vec::new();
        for file in self.list(TRUSTED_DIR)? {
            if file
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                records.extend(read_record(&file)?);
            }
        }
        records.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(records)
    }

    /// Stores a decision, over an earlier one about the same folder.
    pub(crate) fn store_decision(&self, record: &TrustRecord) -> Result<(), CliError> {
        let name = TrustRecord::file_name(&record.path);
        let json = serde_json::to_vec_pretty(record).map_err(anyhow::Error::from)?;
        self.write_private(TRUSTED_DIR, &name, &json)
    }

    /// Forgets the decision about a folder. Returns whether there was one.
    pub(crate) fn forget_decision(&self, path: &Path) -> Result<bool, CliError> {
        self.remove(TRUSTED_DIR, &TrustRecord::file_name(path))
    }

    /// Returns the key for grants; none if there is none yet.
    fn grant_key(&self) -> Result<Option<GrantKey>, CliError> {
        let Some(dir) = &self.dir else {
            return Ok(None);
        };
        let path = dir.join(GRANT_KEY_DIR).join(GRANT_KEY_FILE);
        let Some(text) = read_file(&path)? else {
            return Ok(None);
        };
        require_private(&path)?;
        let wrong = || CliError::usage(format!("{} is damaged; remove it", path.display()));
        let digits = text.trim().as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes: Option<Vec<u8>> = digits.map(byte).collect();
        let bytes = bytes.and_then(|bytes| <[u8; 32]>::try_from(bytes).ok());
        Ok(Some(GrantKey::new(bytes.ok_or_else(wrong)?)))
    }

    /// Makes a key for grants.
    fn make_grant_key(&self) -> Result<GrantKey, CliError> {
        let bytes: [u8; 32] = rand::random();
        // Of two processes that make it at once, one does.
        let dir = self.dir()?.join(GRANT_KEY_DIR);
        make_private_dir(&dir).map_err(|error| unusable(&dir, &error))?;
        let held = open_dir(&dir).map_err(|error| unusable(&dir, &error))?;
        held.lock().map_err(|error| unusable(&dir, &error))?;
        if let Some(key) = self.grant_key()? {
            return Ok(key);
        }
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        self.write_private(GRANT_KEY_DIR, GRANT_KEY_FILE, text.as_bytes())?;
        Ok(GrantKey::new(bytes))
    }

    fn list(&self, folder: &str) -> Result<Vec<PathBuf>, CliError> {
        let Some(path) = self.dir.as_ref().map(|dir| dir.join(folder)) else {
            return Ok(Vec::new());
        };
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(unusable(&path, &error)),
        };
        let paths = entries.flatten().map(|entry| entry.path());
        Ok(paths.take(MAX_FILES).collect())
    }

    /// Writes a file that only the person can read, in a folder that only they can open.
    fn write_private(&self, folder: &str, name: &str, data: &[u8]) -> Result<(), CliError> {
        let dir = self.dir()?.join(folder);
        let failed = |error: std::io::Error| unusable(&dir, &error);
        make_private_dir(&dir).map_err(failed)?;
        let open = open_dir(&dir).map_err(failed)?;
        OsDisk
            .replace(open.as_fd(), Path::new(name), data, 0o600)
            .map_err(failed)?;
        OsDisk.sync(&open).map_err(failed)
    }

    fn remove(&self, folder: &str, name: &str) -> Result<bool, CliError> {
        let dir = self.dir()?.join(folder);
        let failed = |error: std::io::Error| unusable(&dir, &error);
        let open = match open_dir(&dir) {
            Ok(open) => open,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        match OsDisk.remove(open.as_fd(), Path::new(name), rustix::fs::AtFlags::empty()) {
            Ok(()) => OsDisk.sync(&open).map_err(failed).map(|()| true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}

impl GrantKeys for PersonalFolder {
    fn key(&self) -> Result<Option<GrantKey>, String> {
        self.grant_key().map_err(|error| error.to_string())
    }

    fn key_or_new(&self) -> Result<GrantKey, String> {
        match self.key()? {
            Some(key) => Ok(key),
            None => self.make_grant_key().map_err(|error| error.to_string()),
        }
    }
}

/// Makes a folder that only the person can open.
fn make_private_dir(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder.create(dir)?;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o700))
}

fn unusable(path: &Path, error: &std::io::Error) -> CliError {
    CliError::usage(format!("{}: {error}", path.display()))
}

/// Returns a decision; none if there is none. A file that is not a decision is an error.
fn read_record(file: &Path) -> Result<Option<TrustRecord>, CliError> {
    let Some(text) = read_file(file)? else {
        return Ok(None);
    };
    let wrong = |error: serde_json::Error| {
        CliError::usage(format!(
            "{}: {error}; remove the file, and you are asked again",
            file.display()
        ))
    };
    serde_json::from_str(&text).map(Some).map_err(wrong)
}

/// Reads a small regular file; none if there is none.
fn read_file(path: &Path) -> Result<Option<String>, CliError> {
    let failed = |error: std::io::Error| unusable(path, &error);
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let path_text = path.display();
    if !metadata.is_file() {
        return Err(CliError::usage(format!(
            "{path_text} is not an ordinary file"
        )));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(MAX_FILE_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(CliError::usage(format!(
            "{path_text} has more than {MAX_FILE_BYTES} bytes"
        )));
    }
    Ok(Some(text))
}

/// Refuses a file that other users can read.
fn require_private(path: &Path) -> Result<(), CliError> {
    let metadata = std::fs::metadata(path).map_err(|error| unusable(path, &error))?;
    if metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(CliError::usage(format!(
        "{path} can be read by other users; `chmod 600 {path}` keeps it yours"
    )))
}
