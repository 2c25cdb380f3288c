//! The settings file of a profile.
//!
//! Effects: none.

use super::merge::canonical_tool;
use super::{GeneralPurpose, Profile, ProfileKey, ProfileLayer, ProfileSource};
use crate::{Finding, SettingsDocument, Severity, SourcePosition, Surface, tool_problem};
use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use stead_model::{Caching, supports_caching};
use stead_tools::ShownTools;

/// The maximum length of a text of a profile: each is part of every request.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// A profile: settings for some models.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileFile {
    /// The models: `provider`, `provider:model`, or `provider:prefix*`; or a list of them.
    #[serde(rename = "for", deserialize_with = "one_or_many")]
    #[schemars(with = "OneOrMany")]
    models: Vec<String>,
    /// The last text of the system prompt.
    prompt_suffix: Option<String>,
    /// Descriptions that replace the tools' own, by any name of the tool.
    descriptions: BTreeMap<String, String>,
    /// The tools that the model is not shown and cannot call.
    exclude: Vec<String>,
    /// The names under which tools are shown to the model.
    surface: Option<Surface>,
    /// How many tools the model is shown; the others are found with `tool_search`. Left out, `few`
    /// with a small context window, or else `usual`.
    shown_tools: Option<ShownTools>,
    /// The sampling temperature, where the agent sets none.
    temperature: Option<f64>,
    /// The maximum number of thinking tokens, where the agent sets none.
    thinking_tokens: Option<u32>,
    /// How long the provider caches the start of a request, if that can be set: `off`, `5m` or
    /// `1h`.
    caching: Option<Caching>,
    /// The built-in subagent: `false` for none, or a map with its settings.
    #[schemars(with = "Option<BoolOrGeneralPurpose>")]
    general_purpose: GeneralPurposeSetting,
}

/// The settings of the built-in subagent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct GeneralPurposeFields {
    /// Whether the subagent exists.
    enabled: Option<bool>,
    /// The description for agents that may delegate to the subagent.
    description: Option<String>,
    /// The subagent's prompt.
    prompt: Option<String>,
}

#[derive(Debug, Clone, Default)]
struct GeneralPurposeSetting(GeneralPurposeFields);

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only its schema is used")]
enum BoolOrGeneralPurpose {
    On(bool),
    Different(GeneralPurposeFields),
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct OneOrManyVisitor;
    impl<'de> Visitor<'de> for OneOrManyVisitor {
        type Value = Vec<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`provider` or `provider:model`, or a list of them")
        }
        fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
            Ok(vec![name.to_owned()])
        }
        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Self::Value, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(list))
        }
    }
    deserializer.deserialize_any(OneOrManyVisitor)
}

impl<'de> Deserialize<'de> for GeneralPurposeSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GeneralPurposeVisitor;
        impl<'de> Visitor<'de> for GeneralPurposeVisitor {
            type Value = GeneralPurposeSetting;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`true`, `false`, or a map with `enabled`, `description`, `prompt`")
            }
            fn visit_bool<E: Error>(self, on: bool) -> Result<GeneralPurposeSetting, E> {
                Ok(GeneralPurposeSetting(GeneralPurposeFields {
                    enabled: Some(on),
                    ..GeneralPurposeFields::default()
                }))
            }
            fn visit_map<A: MapAccess<'de>>(
                self,
                map: A,
            ) -> Result<GeneralPurposeSetting, A::Error> {
                GeneralPurposeFields::deserialize(MapAccessDeserializer::new(map))
                    .map(GeneralPurposeSetting)
            }
        }
        deserializer.deserialize_any(GeneralPurposeVisitor)
    }
}

/// A profile file that was parsed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedProfile {
    file: String,
    /// The keys with their positions in the file.
    keys: Vec<(ProfileKey, SourcePosition)>,
    pub(crate) profile: Profile,
    /// The tools that the profile names and that are not built in.
    pub(crate) unknown_tools: Vec<(String, Finding)>,
    /// The findings that are not errors.
    pub(crate) notes: Vec<Finding>,
}

impl ParsedProfile {
    /// Parses the `text` of `file`. Returns all problems on failure.
    pub(crate) fn parse(file: &str, text: &str) -> Result<Self, Vec<Finding>> {
        let one = |finding| vec![finding];
        let document = SettingsDocument::parse_yaml(file, text).map_err(one)?;
        let raw: ProfileFile = document.deserialize_into().map_err(one)?;
        let mut wrong = Vec::new();
        let keys = parse_keys(&raw, &document, &mut wrong);
        wrong.extend(
            raw.problems(&keys)
                .into_iter()
                .map(|(key, words)| document.error(&key, format!("{key}: {words}"))),
        );
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let (unknown, notes) = raw.check_tool_names(&document);
        Ok(Self {
            file: file.to_owned(),
            keys,
            profile: raw.into_profile(),
            unknown_tools: unknown,
            notes,
        })
    }

    /// Returns the layers of the profile, one for each key.
    pub(crate) fn layers(&self) -> impl Iterator<Item = ProfileLayer> + '_ {
        self.layers_from(ProfileSource::File(self.file.clone()))
    }

    pub(crate) fn layers_from(
        &self,
        source: ProfileSource,
    ) -> impl Iterator<Item = ProfileLayer> + '_ {
        let layer = move |(key, _): &(ProfileKey, SourcePosition)| ProfileLayer {
            key: key.clone(),
            source: source.clone(),
            profile: self.profile.clone(),
        };
        self.keys.iter().map(layer)
    }

    /// Returns findings for keys that appear in two files.
    pub(crate) fn duplicate_findings(all: &[impl AsRef<Self>]) -> Vec<Finding> {
        let mut seen: Vec<(&ProfileKey, &str)> = Vec::new();
        let mut wrong = Vec::new();
        for read in all.iter().map(AsRef::as_ref) {
            for (key, spot) in &read.keys {
                match seen.iter().find(|(known, _)| *known == key) {
                    Some((_, first)) => {
                        let words = format!(
                            "for: {key} has a profile in {first} already; put both into one"
                        );
                        wrong.push(Finding::error(&read.file, words).with_position(*spot));
                    }
                    None => seen.push((key, &read.file)),
                }
            }
        }
        wrong
    }
}

impl AsRef<Self> for ParsedProfile {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// The files of the built-in profiles.
const BUILT_IN: [(&str, &str); 1] =
    [("local.yaml", include_str!("../../data/profiles/local.yaml"))];

/// Returns the built-in profiles.
pub(crate) fn built_in_profiles() -> Vec<ProfileLayer> {
    let read = BUILT_IN
        .iter()
        .filter_map(|(file, text)| ParsedProfile::parse(file, text).ok());
    read.flat_map(|read| read.layers_from(ProfileSource::BuiltIn).collect::<Vec<_>>())
        .collect()
}

fn parse_keys(
    raw: &ProfileFile,
    document: &SettingsDocument,
    wrong: &mut Vec<Finding>,
) -> Vec<(ProfileKey, SourcePosition)> {
    let mut keys: Vec<(ProfileKey, SourcePosition)> = Vec::new();
    for (i, name) in raw.models.iter().enumerate() {
        let at = format!("for[{i}]");
        match name.parse::<ProfileKey>() {
            Ok(key) if keys.iter().any(|(known, _)| *known == key) => {
                wrong.push(document.error(&at, format!("for: {key} stands here twice")));
            }
            Ok(key) => keys.push((key, document.position(&at))),
            Err(error) => wrong.push(Finding {
                hint: error.hint(),
                ..document.error(&at, format!("for: {error}"))
            }),
        }
    }
    keys
}

impl ProfileFile {
    /// Returns the problems of values with their keys.
    fn problems(&self, keys: &[(ProfileKey, SourcePosition)]) -> Vec<(String, String)> {
        let mut wrong = Vec::new();
        let mut add = |key: &str, words: String| wrong.push((key.to_owned(), words));
        if self.models.is_empty() {
            add(
                "for",
                "which models? Name a provider, or provider:model".to_owned(),
            );
        }
        if self
            .temperature
            .is_some_and(|degrees| !(0.0..=2.0).contains(&degrees))
        {
            add("temperature", "must be from 0 to 2".to_owned());
        }
        let deaf = keys
            .iter()
            .map(|(key, _)| key.provider())
            .find(|provider| !supports_caching(provider));
        if let Some(provider) = deaf.filter(|_| self.caching.is_some()) {
            add(
                "caching",
                format!("{provider} cannot be told; only anthropic can"),
            );
        }
        let mut described: BTreeMap<String, &str> = BTreeMap::new();
        for (name, text) in &self.descriptions {
            let key = format!("descriptions.{name}");
            if text.trim().is_empty() {
                add(&key, "is empty".to_owned());
            }
            if let Some(other) = described.insert(canonical_tool(name), name) {
                add(&key, format!("is the same tool as {other}; keep one"));
            }
        }
        let GeneralPurposeSetting(GeneralPurposeFields {
            description,
            prompt,
            ..
        }) = &self.general_purpose;
        let described = self
            .descriptions
            .iter()
            .map(|(name, text)| (format!("descriptions.{name}"), Some(text)));
        let others = [
            ("prompt_suffix".to_owned(), self.prompt_suffix.as_ref()),
            (
                "general_purpose.description".to_owned(),
                description.as_ref(),
            ),
            ("general_purpose.prompt".to_owned(), prompt.as_ref()),
        ];
        for (key, text) in described.chain(others) {
            if text.is_some_and(|text| text.len() > MAX_TEXT_BYTES) {
                add(&key, format!("is longer than {MAX_TEXT_BYTES} bytes"));
            }
        }
        for (key, text) in [
            ("general_purpose.description", description),
            ("general_purpose.prompt", prompt),
        ] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                add(key, "is empty".to_owned());
            }
        }
        wrong
    }

    /// Checks the names of tools. Returns those that are not built in, and findings about the
    /// others.
    fn check_tool_names(
        &self,
        document: &SettingsDocument,
    ) -> (Vec<(String, Finding)>, Vec<Finding>) {
        let excluded = self
            .exclude
            .iter()
            .enumerate()
            .map(|(i, name)| (format!("exclude[{i}]"), "exclude", name));
        let described = self
            .descriptions
            .keys()
            .map(|name| (format!("descriptions.{name}"), "descriptions", name));
        let mut unknown = Vec::new();
        let mut notes = Vec::new();
        for (at, key, name) in excluded.chain(described) {
            match tool_problem(name) {
                None => {}
                // A misspelled name would leave the tool enabled.
                Some((Severity::NonFatal | Severity::Error, words)) => {
                    unknown.push((name.clone(), document.error(&at, format!("{key}: {words}"))));
                }
                Some((severity @ (Severity::Inactive | Severity::Warning), words)) => {
                    notes.push(document.finding(severity, &at, format!("{key}: {words}")));
                }
            }
        }
        (unknown, notes)
    }

    fn into_profile(self) -> Profile {
        let GeneralPurposeSetting(GeneralPurposeFields {
            enabled,
            description,
            prompt,
        }) = self.general_purpose;
        Profile {
            prompt_suffix: self.prompt_suffix,
            descriptions: self.descriptions,
            exclude: self.exclude.into_iter().collect(),
            surface: self.surface,
            shown_tools: self.shown_tools,
            temperature: self.temperature,
            thinking_tokens: self.thinking_tokens,
            caching: self.caching,
            general_purpose: GeneralPurpose {
                enabled,
                description,
                prompt,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let table = [
            ("temperature: 1", "1:1: for: which models?"),
            ("for: []", "1:1: for: which models?"),
            (
                "for: opnai",
                "1:1: for: no provider is named \"opnai\"; did you mean `openai`?",
            ),
            (
                "for:\n- openai\n- openai-chat",
                "3:3: for: openai stands here twice",
            ),
            (
                "for: openai\nsurfce: a",
                "2:1: surfce: unknown field `surfce`; did you mean `surface`?",
            ),
            (
                "for: openai\nsurface: titel",
                "2:1: surface: unknown value `titel`; did you mean `title`?",
            ),
            (
                "for: openai\ntemperature: 3",
                "2:1: temperature: must be from 0 to 2",
            ),
            ("for: openai\ntemperature: warm", "2:1: temperature: "),
            (
                "for: openai\ncaching: 1h",
                "2:1: caching: openai cannot be told; only anthropic can",
            ),
            (
                "for: [anthropic, gemini]\ncaching: 5m",
                "2:1: caching: gemini cannot be told",
            ),
            (
                "for: anthropic\ncaching: 2h",
                "2:1: caching: \"2h\" is none of",
            ),
            (
                "for: openai\nexclude: ls",
                "2:1: exclude: a list is needed here",
            ),
            (
                "for: openai\ndescriptions:\n  ls: ''",
                "3:3: descriptions.ls: is empty",
            ),
            (
                "for: openai\ndescriptions:\n  Bash: a\n  execute: b",
                "4:3: descriptions.execute: is the same tool as Bash",
            ),
            (
                "for: openai\ngeneral_purpose:\n  promt: a",
                "3:3: general_purpose.promt: unknown field `promt`; did you mean `prompt`?",
            ),
            (
                "for: openai\ngeneral_purpose:\n  prompt: ' '",
                "3:3: general_purpose.prompt: is empty",
            ),
            (
                "for: openai\ngeneral_purpose: maybe",
                "2:1: general_purpose: ",
            ),
        ];
        let long = format!(
            "for: openai\ndescriptions:\n  ls: {}",
            "a".repeat(MAX_TEXT_BYTES + 1)
        );
        for (text, said) in table.into_iter().chain([(
            long.as_str(),
            "3:3: descriptions.ls: is longer than 32768 bytes",
        )]) {
            let error = ParsedProfile::parse("profiles/a.yaml", text).unwrap_err()[0].to_string();
            assert!(
                error.starts_with(&format!("profiles/a.yaml:{said}")),
                "{text:?}: {error}"
            );
        }
    }

    #[test]
    fn tools_that_nobody_knows_are_told_with_their_place() {
        let text = "for: openai\nexclude:\n- ls\n- mcp__x__y\n- web_fetch\n- raed_file\ndescriptions:\n  own_thing: a\n";
        let read = ParsedProfile::parse("profiles/a.yaml", text).unwrap();
        let unknown: Vec<String> = read
            .unknown_tools
            .iter()
            .map(|(name, finding)| format!("{name} {finding}"))
            .collect();
        assert_eq!(
            unknown,
            [
                "raed_file profiles/a.yaml:6:3: exclude: there is no tool raed_file; did you mean read_file?",
                "own_thing profiles/a.yaml:8:3: descriptions: there is no tool own_thing"
            ]
        );
        let notes: Vec<(Severity, SourcePosition)> = read
            .notes
            .iter()
            .map(|note| (note.severity, note.place))
            .collect();
        assert_eq!(
            notes,
            [(Severity::Inactive, SourcePosition { line: 5, column: 3 })]
        );
    }

    #[test]
    fn two_profiles_for_the_same_models_are_refused() {
        let read = |file: &str, text: &str| ParsedProfile::parse(file, text).unwrap();
        let all = [
            read("a.yaml", "for: [openai, 'openai:gpt-5*']"),
            read("b.yaml", "for: openai:gpt-5"),
            read("c.yaml", "temperature: 1\nfor: [gemini, openai-chat]"),
        ];
        let said: Vec<String> = ParsedProfile::duplicate_findings(&all)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            said,
            ["c.yaml:2:15: for: openai has a profile in a.yaml already; put both into one"]
        );
    }

    #[test]
    fn built_in_profiles_are_right_and_exclude_nothing_that_a_workspace_could_not_bring_back() {
        for (file, text) in BUILT_IN {
            let read = ParsedProfile::parse(file, text).unwrap();
            assert_eq!(
                (
                    &read.unknown_tools[..],
                    &read.notes[..],
                    &read.profile.exclude
                ),
                (&[][..], &[][..], &Default::default())
            );
        }
        assert!(built_in_profiles().len() >= BUILT_IN.len());
    }
}
