//! The environment of the process, read once at the start for all other modules.
//!
//! Effects: the environment, the terminal.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use stead::agent::DEFAULT_MODEL_VARIABLE;
use stead::model::{KeyPolicy, providers};
use stead::workspace::{PersonalSettings, is_secret_variable};

/// The variables and terminals of this process.
#[derive(Debug, Clone)]
pub(crate) struct ProcessEnv {
    variables: BTreeMap<String, String>,
    /// The person's own settings.
    pub(crate) personal: Arc<PersonalSettings>,
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
            personal: Arc::default(),
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

    /// Returns the folder of Stead for what lasts and is no configuration.
    pub(crate) fn state(&self) -> Option<PathBuf> {
        let named = self
            .get("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        named
            .or_else(|| self.home().map(|home| home.join(".local/state")))
            .map(|state| state.join("stead"))
    }

    /// Returns the configuration folder of Stead.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        let named = self
            .get("XDG_CONFIG_HOME")
            .map(PathBuf::from)
            .filter(|path| path.is_absolute());
        named
            .or_else(|| self.home().map(|home| home.join(".config")))
            .map(|config| config.join("stead"))
    }

    /// Returns this environment with the person's own settings and stored keys, which count where a
    /// variable is not set.
    pub(crate) fn with_personal(
        &self,
        mut personal: PersonalSettings,
        keys: BTreeMap<&'static str, String>,
    ) -> Self {
        let mut env = self.clone();
        let mut set = |name: &str, value: &Option<String>| {
            if let (None, Some(value)) = (self.get(name), value) {
                env.variables.insert(name.to_owned(), value.clone());
            }
        };
        set(DEFAULT_MODEL_VARIABLE, &personal.model);
        for provider in providers() {
            let own = personal.providers.get(provider.name);
            set(
                provider.base_url_variable,
                &own.and_then(|own| own.base_url.clone()),
            );
            let is_set = |name: &&str| self.get(name).is_some();
            if let (Some(first), false) = (
                provider.key_variables.first(),
                provider.key_variables.iter().any(is_set),
            ) {
                let named = own.and_then(|own| own.api_key.clone());
                set(first, &named.or_else(|| keys.get(provider.name).cloned()));
            }
        }
        // A stored key is a secret even if a variable goes before it.
        personal.secrets.extend(keys.into_values());
        env.personal = Arc::new(personal);
        env
    }

    /// Returns which endpoints may be sent which keys of the person.
    pub(crate) fn key_policy(&self) -> KeyPolicy {
        let secrets = self.secret_variables();
        let mut policy = KeyPolicy::new(secrets, &|name| self.get(name));
        self.personal.add_endpoints(&mut policy);
        policy
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
        let variables = self.secret_variables();
        let own = self.personal.secrets.iter().cloned();
        variables.map(|(_, value)| value).chain(own).collect()
    }

    fn secret_variables(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let variables = self.variables.iter();
        let secrets = variables.filter(|(name, value)| is_secret_variable(name, value));
        secrets.map(|(name, value)| (name.clone(), value.clone()))
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
            personal: Arc::default(),
            folder,
            executable: None,
            temporary: PathBuf::from("/tmp"),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
        }
    }
}
