//! A person's own settings, for all their workspaces: `config.yaml` in their configuration folder.
//!
//!
//! Effects: none.

use crate::profile::ParsedProfile;
use crate::{Finding, ProfileFile, ProfileLayer, ProfileSource, SettingOrigin, SettingsDocument};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use stead_model::{KeyPolicy, check_name, endpoint_origin, providers};

/// A person's own settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PersonalSettings {
    /// The model of workspaces that name none, as `provider:model`.
    pub model: Option<String>,
    /// The endpoints and keys of providers, by the provider's name.
    pub providers: BTreeMap<&'static str, PersonalProvider>,
    /// Profiles. Those of a workspace override them.
    pub profiles: Vec<ProfileLayer>,
    /// The origin of each setting, by key.
    pub origins: BTreeMap<String, SettingOrigin>,
    /// The values of variables, which are redacted.
    pub secrets: Vec<String>,
}

/// A person's settings of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PersonalProvider {
    /// The endpoint, if it is not the provider's default.
    pub base_url: Option<String>,
    /// The key: `${VARIABLE}`.
    pub api_key: Option<String>,
    /// Further endpoints that may be sent the key if a workspace names them: URLs, or names of hosts
    /// that are reached over HTTPS.
    pub hosts: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PersonalFile {
    model: Option<String>,
    providers: BTreeMap<String, PersonalProvider>,
    profiles: Vec<Value>,
}

impl PersonalSettings {
    /// Parses the `text` of `file`, taking variables from `lookup`. Returns all problems on failure.
    pub fn parse(
        file: &str,
        text: &str,
        lookup: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, Vec<Finding>> {
        let one = |finding| vec![finding];
        let mut document = SettingsDocument::parse_yaml(file, text).map_err(one)?;
        let literal_keys = literal_key_findings(&document);
        let (secrets, mut wrong) = document.resolve_variables(lookup);
        wrong.extend(literal_keys);
        let written: PersonalFile = document.deserialize_into().map_err(one)?;
        if let Some(Err(error)) = written.model.as_deref().map(check_name) {
            wrong.push(document.error("model", format!("model: {error}")));
        }
        let mut settings = Self {
            model: written.model,
            secrets,
            ..Self::default()
        };
        for (name, provider) in written.providers {
            wrong.extend(provider_findings(&document, &name, &provider));
            let known = providers().iter().find(|known| known.name == name);
            settings
                .providers
                .extend(known.map(|known| (known.name, provider)));
        }
        for (i, profile) in written.profiles.iter().enumerate() {
            match parse_profile(&document, &format!("profiles[{i}]"), profile) {
                Ok(profile) => {
                    let source = ProfileSource::Person(file.to_owned());
                    settings.profiles.extend(profile.layers_from(source));
                }
                Err(findings) => wrong.extend(findings),
            }
        }
        let origin = |spot| SettingOrigin {
            source: file.to_owned(),
            place: Some(spot),
        };
        let keys = document.keys();
        settings.origins = keys
            .map(|(key, spot)| (key.to_owned(), origin(spot)))
            .collect();
        match wrong.is_empty() {
            true => Ok(settings),
            false => Err(wrong),
        }
    }

    /// Adds the endpoints that may be sent keys to `policy`.
    pub fn add_endpoints(&self, policy: &mut KeyPolicy) {
        for (name, provider) in &self.providers {
            for address in provider.base_url.iter().chain(&provider.hosts) {
                policy.allow(name, address);
            }
        }
    }
}

/// Returns an error for each key that is written out: `stead auth` and variables keep keys apart
/// from settings, which people share.
fn literal_key_findings(document: &SettingsDocument) -> Vec<Finding> {
    let providers = document.value().get("providers").and_then(Value::as_object);
    let keys = providers
        .into_iter()
        .flatten()
        .filter_map(|(name, settings)| {
            let key = settings.get("api_key").and_then(Value::as_str)?;
            let is_reference = key.trim().starts_with("${") && key.trim().ends_with('}');
            (!is_reference).then(|| format!("providers.{name}.api_key"))
        });
    let error = |key: String| {
        let text = format!("{key}: write ${{VARIABLE}}, or store the key with `stead auth add`");
        document.error(&key, text)
    };
    keys.map(error).collect()
}

fn provider_findings(
    document: &SettingsDocument,
    name: &str,
    provider: &PersonalProvider,
) -> Vec<Finding> {
    let key = format!("providers.{name}");
    if !providers().iter().any(|known| known.name == name) {
        let known: Vec<&str> = providers().iter().map(|known| known.name).collect();
        let near = crate::closest_name(name, &known);
        let hint = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
        return vec![document.error(&key, format!("{key}: there is no provider {name:?}{hint}"))];
    }
    let mut wrong = Vec::new();
    if let Some(url) = &provider.base_url
        && endpoint_origin(url).is_none()
    {
        let key = format!("{key}.base_url");
        wrong.push(document.error(&key, format!("{key}: {url:?} is no address")));
    }
    for (i, host) in provider.hosts.iter().enumerate() {
        if !KeyPolicy::default().allow(name, host) {
            let key = format!("{key}.hosts[{i}]");
            wrong.push(document.error(&key, format!("{key}: {host:?} is no host and no URL")));
        }
    }
    wrong
}

/// Parses an entry of `profiles`, which has the form of a profile file.
fn parse_profile(
    document: &SettingsDocument,
    key: &str,
    value: &Value,
) -> Result<ParsedProfile, Vec<Finding>> {
    // Mistakes in types are reported at their own position, other ones at that of the entry.
    if let Err(finding) = document.deserialize_at::<ProfileFile>(key, value) {
        return Err(vec![finding]);
    }
    let parsed = ParsedProfile::parse(document.file(), &value.to_string());
    let at = document.position(key);
    let moved = |finding: Finding| finding.with_position(at);
    parsed.map_err(|findings| findings.into_iter().map(moved).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<PersonalSettings, Vec<Finding>> {
        let lookup = |name: &str| (name == "WORK_KEY").then(|| "the-key".to_owned());
        PersonalSettings::parse("config.yaml", text, &lookup)
    }

    #[test]
    fn settings_are_read_with_their_origins() {
        let text = "model: openai:gpt-5
providers:
  openai: {base_url: 'https://llm.example/v1', api_key: '${WORK_KEY}', hosts: [other.example]}
profiles:
  - {for: openai, prompt_suffix: Be brief.}
";
        let settings = parse(text).unwrap();
        assert_eq!(settings.model.as_deref(), Some("openai:gpt-5"));
        let provider = &settings.providers["openai"];
        assert_eq!(provider.api_key.as_deref(), Some("the-key"));
        assert_eq!(settings.secrets, ["the-key"]);
        assert_eq!(settings.profiles.len(), 1);
        let origin = &settings.origins["providers.openai.base_url"];
        assert_eq!(origin.place.unwrap().line, 3);
        let mut policy = KeyPolicy::new([], &|_| None);
        settings.add_endpoints(&mut policy);
        for host in ["https://llm.example/v1", "https://other.example/x"] {
            assert!(policy.knows_endpoint("openai", host), "{host}");
        }
        assert_eq!(parse("").unwrap(), PersonalSettings::default());
    }

    #[test]
    fn a_mistake_is_an_error_at_its_place() {
        for (text, start) in [
            ("modell: x", "config.yaml:1:1: "),
            ("theme: dark", "config.yaml:1:1: "),
            ("model: gpt", "config.yaml:1:1: model: "),
            (
                "providers:\n  opnai: {}",
                "config.yaml:2:3: providers.opnai: there is no provider",
            ),
            ("providers: {openai: {url: x}}", "config.yaml:1:22: "),
            (
                "providers: {openai: {base_url: x}}",
                "config.yaml:1:22: providers.openai.base_url: ",
            ),
            (
                "providers: {openai: {hosts: ['a b']}}",
                "config.yaml:1:30: providers.openai.hosts[0]: ",
            ),
            (
                "providers: {openai: {api_key: sk-1}}",
                "config.yaml:1:22: providers.openai.api_key: write ${VARIABLE}",
            ),
            (
                "providers: {openai: {api_key: '${NOT_SET}'}}",
                "config.yaml:1:22: the variable NOT_SET",
            ),
            (
                "profiles:\n  - {for: openai, promt_suffix: x}",
                "config.yaml:2:",
            ),
            ("profiles:\n  - {for: nobody:x}", "config.yaml:2:"),
        ] {
            let wrong = parse(text).unwrap_err();
            let shown = wrong[0].to_string();
            assert!(shown.starts_with(start), "{text:?}: {shown}");
        }
    }
}
