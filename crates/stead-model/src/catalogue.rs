//! The built-in table of models: windows, limits, abilities, prices.
//!
//! Effects: none.

use crate::{Abilities, providers};
use std::sync::LazyLock;
use stead_core::Price;

/// The table as text.
const TABLE: &str = include_str!("../data/models.txt");

/// An entry of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelInfo {
    /// The number of tokens that fit into one request including its answer.
    pub context_tokens: u32,
    /// The maximum length of an answer in tokens.
    pub max_output_tokens: u32,
    /// The price of its tokens.
    pub price: Price,
    /// Its abilities.
    pub abilities: Abilities,
}

/// Returns the entry for `provider:model`. A model that is not in the table is unknown, and so is
/// its price: nothing is guessed from a similar name.
pub fn lookup(name: &str) -> Option<ModelInfo> {
    let (provider, model) = name.split_once(':')?;
    let provider = match providers::find(provider)?.name {
        "responses" => "openai",
        name => name,
    };
    let stands_for = |row: &CatalogueRow<'_>| {
        row.provider == provider && model.strip_prefix(row.model).is_some_and(is_version_suffix)
    };
    ROWS.iter()
        .filter(|row| stands_for(row))
        .max_by_key(|row| row.model.len())
        .map(|row| row.info)
}

/// Returns the cheap model of the provider of `provider:model`, under the name of that provider.
/// `None` if the table does not know `provider:model`, or it is no dearer than the cheap one.
pub fn cheap_model(name: &str) -> Option<String> {
    let own = lookup(name)?;
    let (provider, _) = name.split_once(':')?;
    let listed = providers::find(provider)?.name;
    let listed = if listed == "responses" {
        "openai"
    } else {
        listed
    };
    let cheap = TABLE.lines().find_map(|line| {
        let mut words = line.strip_prefix("cheap ")?.split_ascii_whitespace();
        words.next().filter(|of| *of == listed)?;
        words.next()
    })?;
    let cheap = format!("{provider}:{cheap}");
    let info = lookup(&cheap)?;
    let is_cheaper = info.price.input < own.price.input && info.price.output < own.price.output;
    is_cheaper.then_some(cheap)
}

/// Returns every model in the table, by name.
pub fn known_models() -> impl Iterator<Item = (String, ModelInfo)> {
    ROWS.iter()
        .map(|row| (format!("{}:{}", row.provider, row.model), row.info))
}

/// Returns whether `rest` is only a version of a model: `-20250514`, `-2024-08-06`, `@20250514`,
/// `-preview-05-20`, `-latest`.
fn is_version_suffix(rest: &str) -> bool {
    let dates = |part: &str| part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_digit());
    let names = |part: &str| matches!(part, "latest" | "preview" | "exp");
    match rest.strip_prefix(['-', '@']) {
        Some(version) => version.split('-').all(|part| dates(part) || names(part)),
        None => rest.is_empty(),
    }
}

struct CatalogueRow<'a> {
    provider: &'a str,
    model: &'a str,
    info: ModelInfo,
}

/// The rows of the table, parsed once.
static ROWS: LazyLock<Vec<CatalogueRow<'static>>> =
    LazyLock::new(|| TABLE.lines().filter_map(parse_row).collect());

fn parse_row(line: &str) -> Option<CatalogueRow<'_>> {
    let mut columns = line.split_ascii_whitespace();
    let (provider, model) = columns.next()?.split_once(':')?;
    let info = ModelInfo {
        context_tokens: columns.next()?.parse().ok()?,
        max_output_tokens: columns.next()?.parse().ok()?,
        price: Price {
            input: columns.next()?.parse().ok()?,
            output: columns.next()?.parse().ok()?,
            cache_read: columns.next()?.parse().ok(),
            cache_write: columns.next()?.parse().ok(),
        },
        abilities: columns.next()?.parse().ok()?,
    };
    columns.next().is_none().then_some(CatalogueRow {
        provider,
        model,
        info,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_of_the_table_is_whole_and_unique() {
        let written: Vec<_> = TABLE
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .filter(|line| !line.starts_with("cheap "))
            .collect();
        for line in &written {
            let row = parse_row(line).unwrap_or_else(|| panic!("{line}"));
            let Price {
                input,
                output,
                cache_read,
                cache_write,
            } = row.info.price;
            assert!(input > 0.0 && output >= input, "{line}");
            assert!(
                cache_read.is_none_or(|read| read > 0.0 && read < input),
                "{line}"
            );
            assert!(cache_write.is_none_or(|write| write >= input), "{line}");
            assert!(
                row.info.max_output_tokens <= row.info.context_tokens,
                "{line}"
            );
            assert!(
                line.split_ascii_whitespace()
                    .skip(5)
                    .take(2)
                    .all(|cell| cell == "-" || cell.parse::<f64>().is_ok()),
                "{line}"
            );
        }
        let names: BTreeSet<_> = written
            .iter()
            .map(|line| line.split_ascii_whitespace().next())
            .collect();
        assert_eq!(names.len(), written.len());
    }

    #[test]
    fn a_row_stands_for_its_versions_and_for_nothing_else() {
        let cases = [
            ("anthropic:claude-sonnet-4-5", Some(3.0)),
            ("anthropic:claude-sonnet-4-5-20250929", Some(3.0)),
            ("anthropic:claude-opus-4-20250514", Some(15.0)),
            ("anthropic:claude-opus-4@20250514", Some(15.0)),
            ("anthropic:claude-opus-4-5", Some(5.0)),
            ("anthropic:claude-opus-4-9", None),
            ("anthropic:claude-3-5-haiku-latest", Some(0.8)),
            ("openai:gpt-5", Some(1.25)),
            ("openai-responses:gpt-5-mini-2025-08-07", Some(0.25)),
            ("openai:gpt-5-ultra", None),
            ("openai:gpt-5.9", None),
            ("openai:gpt-4o-audio-preview", None),
            ("google:gemini-2.5-flash-preview-09-2025", Some(0.3)),
            ("gemini:gemini-2.0-flash-lite-001", Some(0.075)),
            ("ollama:gpt-5", None),
            ("scripted:demo.yaml", None),
            ("replay:tape.jsonl", None),
            ("gpt-5", None),
            ("", None),
        ];
        for (name, input) in cases {
            assert_eq!(lookup(name).map(|info| info.price.input), input, "{name}");
        }
    }

    #[test]
    fn the_cheap_model_of_a_provider_is_known_and_cheaper_than_what_it_stands_in_for() {
        let cases = [
            (
                "anthropic:claude-sonnet-5-5",
                Some("anthropic:claude-haiku-5-5"),
            ),
            ("claude:claude-opus-5", Some("claude:claude-haiku-5-5")),
            ("anthropic:claude-haiku-5-5", None),
            ("openai:gpt-5.6", Some("openai:gpt-5.4-nano")),
            ("responses:gpt-5.6", Some("responses:gpt-5.4-nano")),
            ("openai:gpt-5-nano", None),
            ("openai:my-own-model", None),
            ("ollama:gpt-5", None),
            ("scripted:a.yaml", None),
        ];
        for (name, cheap) in cases {
            assert_eq!(cheap_model(name).as_deref(), cheap, "{name}");
        }
        for line in TABLE.lines().filter(|line| line.starts_with("cheap ")) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let name = format!("{}:{}", words[1], words[2]);
            assert!(words.len() == 3 && lookup(&name).is_some(), "{line}");
        }
    }

    #[test]
    fn a_known_model_is_known_in_full() {
        let price = Price {
            input: 1.0,
            output: 5.0,
            cache_read: Some(0.1),
            cache_write: Some(1.25),
        };
        let abilities = "images,documents,thinking,tools".parse().unwrap();
        let info = ModelInfo {
            context_tokens: 200_000,
            max_output_tokens: 64_000,
            price,
            abilities,
        };
        assert_eq!(lookup("anthropic:claude-haiku-4-5"), Some(info));
    }
}
