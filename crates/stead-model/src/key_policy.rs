//! Which endpoints may be sent which keys.
//!
//! Effects: none.

use crate::ModelError;
use crate::connect::{EnvLookup, ModelName};
use crate::http::is_loopback;
use crate::providers::{Provider, find, providers};
use reqwest::Url;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Shorter secrets count only if they are the whole key: they may be part of another one by chance.
const MIN_CONTAINED_CHARS: usize = 8;

/// The keys of a person, and the endpoints that may be sent them.
///
/// A workspace may name any endpoint, and any variable as its key. A key of the person is sent only
/// to an endpoint of the provider that the key belongs to: its default endpoint, or one that the
/// person's own settings name. A key that the workspace brings itself is sent wherever the
/// workspace says.
///
/// The default policy knows no keys and restricts nothing.
#[derive(Clone, Default)]
pub struct KeyPolicy {
    scope: PolicyScope,
    secrets: Vec<Secret>,
    /// The endpoints that the person named, by provider.
    endpoints: BTreeMap<&'static str, BTreeSet<Origin>>,
}

/// Whether a policy restricts anything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PolicyScope {
    /// Nothing is restricted.
    #[default]
    Unrestricted,
    /// Keys and endpoints of a person are known.
    Person,
}

/// A secret of the person.
#[derive(Clone)]
struct Secret {
    variable: String,
    value: String,
    /// The providers whose key it is; empty for a secret of another kind.
    providers: Vec<&'static str>,
}

/// The scheme, host and port of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Origin(String);

/// Returns the scheme, host and port of a URL, without what else may be in it.
pub fn endpoint_origin(url: &str) -> Option<String> {
    Origin::of(url).map(|origin| origin.0)
}

impl Origin {
    fn of(url: &str) -> Option<Self> {
        let url = Url::parse(url.trim()).ok()?;
        url.host_str()?;
        Some(Self(url.origin().ascii_serialization()))
    }
}

/// Secrets are not shown.
impl fmt::Debug for KeyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.secrets.iter().map(|s| s.variable.as_str()).collect();
        f.debug_struct("KeyPolicy")
            .field("variables", &names)
            .field("endpoints", &self.endpoints)
            .finish()
    }
}

impl KeyPolicy {
    /// Creates the policy of a person with these variables. Every value in `secrets` is kept, as
    /// pairs of a variable and its value; `env` tells the endpoints that variables name.
    pub fn new(secrets: impl IntoIterator<Item = (String, String)>, env: EnvLookup<'_>) -> Self {
        let owners = |variable: &str| {
            let owns = |provider: &&Provider| provider.key_variables.contains(&variable);
            let owners = providers().iter().filter(owns);
            owners.map(|provider| provider.name).collect::<Vec<_>>()
        };
        let secrets = secrets.into_iter().map(|(variable, value)| Secret {
            providers: owners(&variable),
            value: value.trim().to_owned(),
            variable,
        });
        let mut policy = Self {
            scope: PolicyScope::Person,
            secrets: secrets.filter(|secret| !secret.value.is_empty()).collect(),
            endpoints: BTreeMap::new(),
        };
        for provider in providers() {
            if let Some(url) = env(provider.base_url_variable) {
                policy.allow(provider.name, &url);
            }
        }
        policy
    }

    /// Allows the keys of `provider` for the endpoint `address`: a URL, or the name of a host that
    /// is reached over HTTPS. Returns whether provider and address are valid.
    pub fn allow(&mut self, provider: &str, address: &str) -> bool {
        let url = match address.contains("://") {
            true => address.to_owned(),
            false => format!("https://{address}"),
        };
        let (Some(provider), Some(origin)) = (find(provider), Origin::of(&url)) else {
            return false;
        };
        let endpoints = self.endpoints.entry(provider.name).or_default();
        endpoints.insert(origin);
        true
    }

    /// Whether the policy is that of a person, and restricts what folders may choose.
    pub fn is_of_person(&self) -> bool {
        self.scope == PolicyScope::Person
    }

    /// Whether the provider's endpoint `url` is its default, one that the person named, or one of
    /// this machine. A policy without restrictions knows every endpoint.
    pub fn knows_endpoint(&self, provider: &str, url: &str) -> bool {
        let is_local = || Url::parse(url).is_ok_and(|url| is_loopback(&url));
        let is_named = || {
            let (provider, origin) = (find(provider), Origin::of(url));
            let both = provider.zip(origin);
            both.is_some_and(|(provider, origin)| self.is_endpoint_of(provider, &origin))
        };
        self.scope == PolicyScope::Unrestricted || is_local() || is_named()
    }

    /// Returns the variable with a provider's key that `text` contains.
    pub fn provider_key_in(&self, text: &str) -> Option<&str> {
        let keys = self
            .secrets
            .iter()
            .filter(|secret| !secret.providers.is_empty());
        let mut found = keys.filter(|secret| secret.is_in(text));
        found.next().map(|secret| secret.variable.as_str())
    }

    fn is_endpoint_of(&self, provider: &Provider, origin: &Origin) -> bool {
        let default = provider.base_url.and_then(Origin::of);
        let named = self.endpoints.get(provider.name);
        default.as_ref() == Some(origin) || named.is_some_and(|named| named.contains(origin))
    }

    /// Returns the key that is sent to `base_url`. `written` says whether settings contain the key.
    ///
    /// A key from the provider's variable is left out for an endpoint of this machine, which needs
    /// none. Any other key that may not be sent is an error.
    pub(crate) fn key_for(
        &self,
        name: &ModelName,
        provider: &'static Provider,
        base_url: &str,
        key: KeySource,
    ) -> Result<Option<String>, ModelError> {
        let origin = Origin::of(base_url);
        let refused_in = |text: &str| {
            let contained = self.secrets.iter().filter(|secret| secret.is_in(text));
            let mut refused =
                contained.filter(|secret| !self.is_allowed(secret, provider, origin.as_ref()));
            refused.next()
        };
        let value = match &key {
            KeySource::Settings(value) | KeySource::Variable(value) => Some(value),
            KeySource::Absent => None,
        };
        let in_address = refused_in(base_url);
        let Some(secret) = in_address.or_else(|| refused_in(value?)) else {
            return Ok(value.cloned());
        };
        let is_local = Url::parse(base_url).is_ok_and(|url| is_loopback(&url));
        if let (KeySource::Variable(_), true, None) = (&key, is_local, in_address) {
            return Ok(None);
        }
        let origin = origin.map_or_else(|| base_url.to_owned(), |origin| origin.0);
        let owner = secret.providers.first().copied().unwrap_or(provider.name);
        Err(ModelError::Config(format!(
            "{name}: the workspace names the endpoint {origin}, which is not sent the key in {}. \
             If you trust that endpoint with this key, add {origin:?} to `providers.{owner}.hosts` \
             in your own settings",
            secret.variable
        )))
    }

    /// Whether the endpoint `origin` may be sent `secret` as a key of `provider`.
    fn is_allowed(&self, secret: &Secret, provider: &Provider, origin: Option<&Origin>) -> bool {
        let Some(origin) = origin else { return false };
        match secret.providers.as_slice() {
            // A variable of the person's own choice, such as `${WORK_KEY}`.
            [] => self.is_endpoint_of(provider, origin),
            owners => {
                let mut owners = owners.iter().filter_map(|owner| find(owner));
                owners.any(|owner| self.is_endpoint_of(owner, origin))
            }
        }
    }
}

impl Secret {
    fn is_in(&self, key: &str) -> bool {
        match self.value.chars().count() >= MIN_CONTAINED_CHARS {
            true => key.contains(&self.value),
            false => key == self.value,
        }
    }
}

/// Where the key of a model comes from.
pub(crate) enum KeySource {
    /// The model's settings.
    Settings(String),
    /// A variable of the provider.
    Variable(String),
    /// There is none.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_goes_only_to_the_endpoints_of_its_provider_and_of_the_person() {
        let env = |name: &str| {
            (name == "GEMINI_BASE_URL").then(|| "https://gateway.example/v1".to_owned())
        };
        let secrets = [
            ("ANTHROPIC_API_KEY", "sk-ant-secret"),
            ("OPENAI_API_KEY", "short"),
            ("GEMINI_API_KEY", "gemini-secret"),
            ("AWS_SECRET_ACCESS_KEY", "aws-secret-value"),
        ];
        let secrets = secrets.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut policy = KeyPolicy::new(secrets, &env);
        assert!(policy.allow("openai", "llm.corp.example"));
        assert!(!policy.allow("nobody", "llm.corp.example"));
        enum Sent {
            Key,
            Nothing,
            Refused(&'static str),
        }
        use KeySource::{Settings, Variable};
        use Sent::{Key, Nothing, Refused};
        let text = |text: &str| text.to_owned();
        #[rustfmt::skip]
        let table = [
            ("anthropic", "https://api.anthropic.com", Variable(text("sk-ant-secret")), Key),
            ("anthropic", "https://api.anthropic.com/v1", Settings(text("sk-ant-secret")), Key),
            ("anthropic", "http://api.anthropic.com", Variable(text("sk-ant-secret")), Refused("ANTHROPIC_API_KEY")),
            ("anthropic", "https://evil.example", Variable(text("sk-ant-secret")), Refused("ANTHROPIC_API_KEY")),
            ("openai", "https://evil.example/v1", Settings(text("x sk-ant-secret")), Refused("ANTHROPIC_API_KEY")),
            ("openai", "https://api.openai.com/v1", Settings(text("sk-ant-secret")), Refused("ANTHROPIC_API_KEY")),
            ("openai", "http://127.0.0.1:9/v1", Settings(text("sk-ant-secret")), Refused("ANTHROPIC_API_KEY")),
            ("openai", "http://127.0.0.1:9/v1", Variable(text("short")), Nothing),
            ("openai", "http://127.0.0.1.evil.example/v1", Variable(text("short")), Refused("OPENAI_API_KEY")),
            ("openai", "https://llm.corp.example/v1", Variable(text("short")), Key),
            ("openai", "https://llm.corp.example:8443/v1", Variable(text("short")), Refused("OPENAI_API_KEY")),
            ("openai", "https://api.openai.com@evil.example/v1", Variable(text("short")), Refused("OPENAI_API_KEY")),
            ("openai", "https://evil.example/v1", Settings(text("a short one of the folder")), Key),
            ("openai", "https://evil.example/v1", Settings(text("aws-secret-value")), Refused("AWS_SECRET_ACCESS_KEY")),
            ("openai", "https://api.openai.com/v1", Settings(text("aws-secret-value")), Key),
            ("gemini", "https://gateway.example/other", Variable(text("gemini-secret")), Key),
            ("openai", "no address", Variable(text("short")), Refused("OPENAI_API_KEY")),
            ("openai", "https://evil.example/sk-ant-secret", Settings(text("own")), Refused("ANTHROPIC_API_KEY")),
            ("openai", "http://127.0.0.1:9/sk-ant-secret", Variable(text("short")), Refused("ANTHROPIC_API_KEY")),
            ("openai", "https://evil.example/aws-secret-value", KeySource::Absent, Refused("AWS_SECRET_ACCESS_KEY")),
        ];
        for (provider, url, key, expected) in table {
            let name: ModelName = format!("{provider}:m").parse().unwrap();
            let sent = policy.key_for(&name, find(provider).unwrap(), url, key);
            match (sent, expected) {
                (Ok(Some(_)), Key) | (Ok(None), Nothing) => {}
                (Err(error), Refused(variable)) => {
                    assert!(error.to_string().contains(variable), "{url}: {error}");
                    assert!(!error.to_string().contains("secret"), "{url}: {error}");
                }
                (sent, _) => panic!("{provider} {url}: {sent:?}"),
            }
        }
        assert!(!format!("{policy:?}").contains("sk-ant"));
        assert_eq!(
            policy.provider_key_in("x sk-ant-secret"),
            Some("ANTHROPIC_API_KEY")
        );
        assert_eq!(policy.provider_key_in("aws-secret-value"), None);
        for (provider, url, known) in [
            ("anthropic", "https://api.anthropic.com/v1", true),
            ("openai", "https://llm.corp.example/x", true),
            ("anthropic", "https://llm.corp.example/x", false),
            ("openai", "http://127.0.0.1:9/v1", true),
            ("openai", "https://evil.example/v1", false),
            ("nobody", "https://evil.example/v1", false),
        ] {
            assert_eq!(
                policy.knows_endpoint(provider, url),
                known,
                "{provider} {url}"
            );
        }
        assert!(KeyPolicy::default().knows_endpoint("openai", "https://evil.example/v1"));
    }
}
