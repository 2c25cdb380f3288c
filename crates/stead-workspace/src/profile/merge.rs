//! Merging profiles.
//!
//! Effects: none.

use super::{GeneralPurpose, Profile};
use std::collections::BTreeMap;
use stead_tools::known_tool;

/// Merges `profiles`; later ones override earlier ones. Of single values the later wins, maps merge
/// by key, and lists of excluded tools are united.
pub fn merge<'a>(profiles: impl IntoIterator<Item = &'a Profile>) -> Profile {
    profiles.into_iter().fold(Profile::default(), merge_over)
}

fn merge_over(base: Profile, later: &Profile) -> Profile {
    let Profile {
        prompt_suffix,
        descriptions,
        exclude,
        surface,
        shown_tools,
        temperature,
        thinking_tokens,
        caching,
        general_purpose:
            GeneralPurpose {
                enabled,
                description,
                prompt,
            },
    } = later.clone();
    // A tool has one description, for any of its names.
    let named = |descriptions: BTreeMap<String, String>| {
        descriptions
            .into_iter()
            .map(|(name, text)| (canonical_tool(&name), text))
    };
    Profile {
        prompt_suffix: prompt_suffix.or(base.prompt_suffix),
        descriptions: named(base.descriptions)
            .chain(named(descriptions))
            .collect(),
        exclude: base
            .exclude
            .iter()
            .chain(&exclude)
            .map(|name| canonical_tool(name))
            .collect(),
        surface: surface.or(base.surface),
        shown_tools: shown_tools.or(base.shown_tools),
        temperature: temperature.or(base.temperature),
        thinking_tokens: thinking_tokens.or(base.thinking_tokens),
        caching: caching.or(base.caching),
        general_purpose: GeneralPurpose {
            enabled: enabled.or(base.general_purpose.enabled),
            description: description.or(base.general_purpose.description),
            prompt: prompt.or(base.general_purpose.prompt),
        },
    }
}

/// Returns the canonical name of a tool, if it is known here.
pub(super) fn canonical_tool(name: &str) -> String {
    known_tool(name).map_or(name, |known| known.name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Surface;
    use stead_model::Caching;

    /// Parses a profile file.
    fn profile(text: &str) -> Profile {
        super::super::ParsedProfile::parse("p.yaml", &format!("for: anthropic\n{text}"))
            .unwrap()
            .profile
    }

    #[test]
    fn of_single_values_the_later_wins_maps_merge_and_exclusions_unite() {
        let all = "prompt_suffix: a\ndescriptions: {Bash: b, ls: l}\nexclude: [Write, task]\nsurface: title\nshown_tools: few\n\
                   temperature: 0.5\nthinking_tokens: 100\ncaching: 1h\n\
                   general_purpose: {enabled: false, description: d, prompt: p}";
        let table = [
            (vec![], ""),
            (vec![all], all),
            (vec![all, ""], all),
            (vec!["", all], all),
            (
                vec!["prompt_suffix: a", "prompt_suffix: b"],
                "prompt_suffix: b",
            ),
            (
                vec!["prompt_suffix: a", "prompt_suffix: ''"],
                "prompt_suffix: ''",
            ),
            (
                vec![
                    "descriptions: {Bash: a, ls: b}",
                    "descriptions: {execute: c}",
                ],
                "descriptions: {execute: c, ls: b}",
            ),
            (
                vec!["exclude: [Bash]", "exclude: [execute, ls]", "exclude: []"],
                "exclude: [ls, execute]",
            ),
            (vec!["surface: title", "surface: snake"], "surface: snake"),
            (vec!["temperature: 1", "temperature: 0"], "temperature: 0"),
            (
                vec!["thinking_tokens: 5", "thinking_tokens: 0", "temperature: 1"],
                "thinking_tokens: 0\ntemperature: 1",
            ),
            (vec!["caching: 1h", "caching: off"], "caching: off"),
            (
                vec!["general_purpose: false", "general_purpose: true"],
                "general_purpose: true",
            ),
            (
                vec![
                    "general_purpose: {enabled: false, prompt: p}",
                    "general_purpose: {description: d}",
                ],
                "general_purpose: {enabled: false, prompt: p, description: d}",
            ),
        ];
        for (several, one) in table {
            let several: Vec<Profile> = several.into_iter().map(profile).collect();
            assert_eq!(merge(&several), merge([&profile(one)]), "{one}");
        }
    }

    #[test]
    fn every_setting_arrives() {
        let read = profile(
            "prompt_suffix: a\ndescriptions: {Bash: b}\nexclude: [Write]\nsurface: title\nshown_tools: few\ntemperature: 0.5\n\
             thinking_tokens: 100\ncaching: 1h\ngeneral_purpose: {enabled: false, description: d, prompt: p}",
        );
        let want = Profile {
            prompt_suffix: Some("a".to_owned()),
            descriptions: [("execute".to_owned(), "b".to_owned())].into(),
            exclude: ["write_file".to_owned()].into(),
            surface: Some(Surface::Title),
            shown_tools: Some(stead_tools::ShownTools::Few),
            temperature: Some(0.5),
            thinking_tokens: Some(100),
            caching: Some(Caching::Hour),
            general_purpose: GeneralPurpose {
                enabled: Some(false),
                description: Some("d".to_owned()),
                prompt: Some("p".to_owned()),
            },
        };
        assert_eq!(merge([&read]), want);
    }
}
