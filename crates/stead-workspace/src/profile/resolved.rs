//! The profiles that apply to a model, and their merged settings.
//!
//! Effects: none.

use super::{Profile, ProfileKey, excluded_by, merge};
use crate::{BuiltInSurface, Layout, Surface};
use serde_json::{Value, json};
use std::fmt;

/// A profile with its key and its source.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileLayer {
    /// The models that the profile applies to.
    pub key: ProfileKey,
    /// The source of the profile.
    pub source: ProfileSource,
    /// The settings.
    pub profile: Profile,
}

/// The source of a profile. Later variants override earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProfileSource {
    /// The harness.
    BuiltIn,
    /// The person's own settings, by their file.
    Person(String),
    /// A file of the workspace.
    File(String),
    /// The program that uses the library.
    Code,
}

impl ProfileSource {
    fn rank(&self) -> u8 {
        match self {
            Self::BuiltIn => 0,
            Self::Person(_) => 1,
            Self::File(_) => 2,
            Self::Code => 3,
        }
    }
}

impl fmt::Display for ProfileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn => f.write_str("built in"),
            Self::Person(path) | Self::File(path) => f.write_str(path),
            Self::Code => f.write_str("given by the program"),
        }
    }
}

impl fmt::Display for ProfileLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.key, self.source)
    }
}

/// The profiles that apply to a model, and their merged settings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedProfile {
    /// The profiles that apply; each overrides the ones before it.
    pub layers: Vec<ProfileLayer>,
    /// The merged settings.
    pub profile: Profile,
}

/// An effective setting with its source.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfileSetting {
    /// The key as in the file, for maps and lists with the name of the entry.
    pub key: String,
    /// The value.
    pub value: Value,
    /// The profile that gave the value.
    pub source: String,
}

impl ResolvedProfile {
    /// Selects and merges the profiles that apply to `model`, a `provider:model`.
    pub fn new(all: impl IntoIterator<Item = ProfileLayer>, model: &str) -> Self {
        let mut layers: Vec<ProfileLayer> = all
            .into_iter()
            .filter(|layer| layer.key.covers(model))
            .collect();
        layers.sort_by_key(|layer| (layer.source.rank(), layer.key.specificity()));
        let profile = merge(layers.iter().map(|layer| &layer.profile));
        Self { layers, profile }
    }

    /// Returns why the tool with this canonical name is excluded, if it is. The reason names the
    /// most specific profile.
    pub fn exclusion_reason(&self, tool: &str) -> Option<String> {
        let by = self.last_layer(|profile| profile.excludes(tool))?;
        Some(format!("the profile {by} excludes {tool}"))
    }

    /// Returns why there is no built-in subagent, if there is none.
    pub fn general_purpose_disabled_by(&self) -> Option<String> {
        if self.profile.general_purpose.enabled != Some(false) {
            return None;
        }
        let by = self.last_layer(|profile| profile.general_purpose.enabled.is_some())?;
        Some(format!("the profile {by} switches general-purpose off"))
    }

    /// Returns the surface. Sources are tried in this order: the agent's own settings, the
    /// workspace's profiles, the layout if its texts name tools, and the built-in profiles.
    pub fn surface(&self, own: Option<Surface>, layout: Layout, by_layout: Surface) -> Surface {
        let set = |built_in: bool| {
            let layers = self
                .layers
                .iter()
                .filter(|layer| (layer.source == ProfileSource::BuiltIn) == built_in);
            merge(layers.map(|layer| &layer.profile)).surface
        };
        let built_in = match layout.def().built_in_surface {
            BuiltInSurface::Applies => set(true),
            BuiltInSurface::Ignored => None,
        };
        own.or_else(|| set(false)).or(built_in).unwrap_or(by_layout)
    }

    /// Returns the source of the prompt suffix.
    pub fn suffix_source(&self) -> String {
        self.last_layer(|profile| profile.prompt_suffix.is_some())
            .map_or(String::new(), |layer| layer.source.to_string())
    }

    fn last_layer(&self, says: impl Fn(&Profile) -> bool) -> Option<&ProfileLayer> {
        self.layers.iter().rev().find(|layer| says(&layer.profile))
    }

    /// Returns all effective settings with their sources.
    pub fn settings(&self) -> Vec<ProfileSetting> {
        let Profile {
            prompt_suffix,
            descriptions,
            exclude,
            surface,
            shown_tools,
            temperature,
            thinking_tokens,
            caching,
            general_purpose: helper,
        } = &self.profile;
        let mut given = Vec::new();
        let mut add = |key: &str, value: Option<Value>, says: &dyn Fn(&Profile) -> bool| {
            if let (Some(value), Some(by)) = (value, self.last_layer(says)) {
                given.push(ProfileSetting {
                    key: key.to_owned(),
                    value,
                    source: by.to_string(),
                });
            }
        };
        add(
            "prompt_suffix",
            prompt_suffix.as_ref().map(|text| json!(text)),
            &|p| p.prompt_suffix.is_some(),
        );
        for (tool, text) in descriptions {
            let says = |p: &Profile| {
                p.descriptions
                    .keys()
                    .any(|name| super::merge::canonical_tool(name) == *tool)
            };
            add(&format!("descriptions.{tool}"), Some(json!(text)), &says);
        }
        for tool in exclude {
            add(&format!("exclude.{tool}"), Some(json!(true)), &|p| {
                p.exclude.iter().any(|name| excluded_by(name, tool))
            });
        }
        add("surface", surface.map(|surface| json!(surface)), &|p| {
            p.surface.is_some()
        });
        add("shown_tools", shown_tools.map(|shown| json!(shown)), &|p| {
            p.shown_tools.is_some()
        });
        add(
            "temperature",
            temperature.map(|degrees| json!(degrees)),
            &|p| p.temperature.is_some(),
        );
        add(
            "thinking_tokens",
            thinking_tokens.map(|tokens| json!(tokens)),
            &|p| p.thinking_tokens.is_some(),
        );
        add("caching", caching.map(|caching| json!(caching)), &|p| {
            p.caching.is_some()
        });
        let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
        add(
            "general_purpose.enabled",
            helper.enabled.map(|on| json!(on)),
            &|p| p.general_purpose.enabled.is_some(),
        );
        add(
            "general_purpose.description",
            text(&helper.description),
            &|p| p.general_purpose.description.is_some(),
        );
        add("general_purpose.prompt", text(&helper.prompt), &|p| {
            p.general_purpose.prompt.is_some()
        });
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: ProfileSource = ProfileSource::File(String::new());

    /// Creates a profile with a suffix that identifies it.
    fn layer(source: ProfileSource, key: &str) -> ProfileLayer {
        let profile = Profile {
            prompt_suffix: Some(format!("{source:?} {key}")),
            ..Profile::default()
        };
        ProfileLayer {
            key: key.parse().unwrap(),
            source,
            profile,
        }
    }

    #[test]
    fn the_closest_comes_last_and_the_workspace_after_what_is_built_in() {
        let all = || {
            [
                (ProfileSource::Code, "openai"),
                (FILE, "openai:gpt-5"),
                (FILE, "openai:gpt-5*"),
                (FILE, "openai:gpt*"),
                (FILE, "openai"),
                (FILE, "gemini"),
                (ProfileSource::BuiltIn, "openai:gpt-5"),
                (ProfileSource::BuiltIn, "openai"),
            ]
            .map(|(source, key)| layer(source, key))
        };
        let built_in = |key| layer(ProfileSource::BuiltIn, key);
        let table = [
            (
                "openai:gpt-5",
                vec![
                    built_in("openai"),
                    built_in("openai:gpt-5"),
                    layer(FILE, "openai"),
                    layer(FILE, "openai:gpt*"),
                    layer(FILE, "openai:gpt-5*"),
                    layer(FILE, "openai:gpt-5"),
                    layer(ProfileSource::Code, "openai"),
                ],
            ),
            (
                "openai:gpt-4",
                vec![
                    built_in("openai"),
                    layer(FILE, "openai"),
                    layer(FILE, "openai:gpt*"),
                    layer(ProfileSource::Code, "openai"),
                ],
            ),
            ("gemini:gemini-3", vec![layer(FILE, "gemini")]),
            ("anthropic:claude", vec![]),
        ];
        for (model, layers) in table {
            let profile = layers
                .last()
                .map(|layer| layer.profile.clone())
                .unwrap_or_default();
            let mut reversed = all();
            reversed.reverse();
            for all in [all(), reversed] {
                let want = ResolvedProfile {
                    layers: layers.clone(),
                    profile: profile.clone(),
                };
                assert_eq!(ResolvedProfile::new(all, model), want, "{model}");
            }
        }
    }

    #[test]
    fn the_surface_is_the_agents_then_the_workspaces_then_the_layouts_then_what_is_built_in() {
        use Surface::{Snake, Title};
        let resolved = |built_in: Option<Surface>, file: Option<Surface>| {
            let layer = |source, surface| ProfileLayer {
                profile: Profile {
                    surface,
                    ..Profile::default()
                },
                ..layer(source, "openai")
            };
            ResolvedProfile::new(
                [layer(ProfileSource::BuiltIn, built_in), layer(FILE, file)],
                "openai:x",
            )
        };
        let stead = Layout::Stead;
        let foreign = Layout::Openharness;
        #[rustfmt::skip]
        let table = [
            (Some(Snake), Some(Title), Some(Title), (foreign, Title), Snake),
            (None,        Some(Title), Some(Snake), (foreign, Title), Snake),
            (None,        Some(Snake), None,        (foreign, Title), Title),
            (None,        Some(Title), None,        (stead, Snake),   Title),
            (None,        None,        None,        (stead, Snake),   Snake),
        ];
        for (own, built_in, file, (layout, by_layout), want) in table {
            let surface = resolved(built_in, file).surface(own, layout, by_layout);
            assert_eq!(surface, want, "{own:?} {built_in:?} {file:?} {layout}");
        }
    }

    #[test]
    fn what_holds_is_told_with_who_gave_it() {
        let layer = |source, key, profile| ProfileLayer {
            profile,
            ..layer(source, key)
        };
        let base = Profile {
            temperature: Some(1.0),
            exclude: ["Write".to_owned()].into(),
            descriptions: [("Bash".to_owned(), "a".to_owned())].into(),
            ..Profile::default()
        };
        let close = Profile {
            temperature: Some(0.0),
            descriptions: [("ls".to_owned(), "b".to_owned())].into(),
            general_purpose: super::super::GeneralPurpose {
                enabled: Some(false),
                ..Default::default()
            },
            ..Profile::default()
        };
        let file = ProfileSource::File("profiles/a.yaml".to_owned());
        let resolved = ResolvedProfile::new(
            [
                layer(ProfileSource::BuiltIn, "openai", base),
                layer(file, "openai:gpt*", close),
            ],
            "openai:gpt",
        );
        let given = |key: &str, value: Value, by: &str| ProfileSetting {
            key: key.to_owned(),
            value,
            source: by.to_owned(),
        };
        let first = "openai (built in)";
        let second = "openai:gpt* (profiles/a.yaml)";
        assert_eq!(
            resolved.settings(),
            [
                given("descriptions.execute", json!("a"), first),
                given("descriptions.ls", json!("b"), second),
                given("exclude.write_file", json!(true), first),
                given("temperature", json!(0.0), second),
                given("general_purpose.enabled", json!(false), second),
            ]
        );
        let why = "the profile openai (built in) excludes overwrite_file";
        assert_eq!(
            resolved.exclusion_reason("overwrite_file").as_deref(),
            Some(why)
        );
        assert_eq!(resolved.exclusion_reason("ls"), None);
        let why = "the profile openai:gpt* (profiles/a.yaml) switches general-purpose off";
        assert_eq!(resolved.general_purpose_disabled_by().as_deref(), Some(why));
    }
}
