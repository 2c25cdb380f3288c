//! The environment of the process, read once at the start for all other modules.
//!
//! Effects: the environment, the terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use stead::workspace::is_secret_variable;

/// The variables and terminals of this process.
#[derive(Debug, Clone)]
pub(crate) struct ProcessEnv {
    variables: BTreeMap<String, String>,
    /// The current folder.
    pub(crate) folder: PathBuf,
    /// The path of this program.
    pub(crate) executable: Option<PathBuf>,
    /// The folder for temporary files.
    pub(crate) temporary: PathBuf,
    pub(crate) stdin_is_terminal: bool,
    pub(crate) stdout_is_terminal: bool,
    pub(crate) stderr_is_terminal: bool,
}

impl ProcessEnv {
    pub(crate) fn from_process() -> Self {
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            executable: std::env::current_exe().ok(),
            temporary: std::env::temp_dir(),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }

    /// Returns the home folder.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    /// Returns the cache folder of Stead.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        let named = self
            .get("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        named
            .or_else(|| self.home().map(|home| home.join(".cache")))
            .map(|cache| cache.join("stead"))
    }

    /// Returns a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.variables
            .get(name)
            .filter(|value| !value.is_empty())
            .cloned()
    }

    /// Returns the values of the variables that are secrets by their names or values. Whatever
    /// brings them into a session, they are redacted.
    pub(crate) fn secrets(&self) -> Vec<String> {
        let variables = self.variables.iter();
        let secrets = variables.filter(|(name, value)| is_secret_variable(name, value));
        secrets.map(|(_, value)| value.clone()).collect()
    }

    /// Returns the lookup of variables for the parts that outlive this value.
    pub(crate) fn lookup(&self) -> impl Fn(&str) -> Option<String> + Send + Sync + 'static {
        let env = self.clone();
        move |name| env.get(name)
    }

    /// Returns the environment of a test, without a terminal.
    #[cfg(test)]
    pub(crate) fn for_test(variables: BTreeMap<String, String>, folder: PathBuf) -> Self {
        Self {
            variables,
            folder,
            executable: None,
            temporary: PathBuf::from("/tmp"),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
        }
    }
}
