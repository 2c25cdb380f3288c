//! `stead models`: the providers and models, and what is known about them.
//!
//! Effects: randomness, the environment, the terminal, workspace files (reads), the local disk
//! (writes), the model.

use super::args::{GlobalArgs, ModelsArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::{open_options, workspace_dir};
use super::open_agent::{open_workspace, variable, without_model};
use super::print::{out_json, outln};
use super::style::Style;
use super::usage::group_thousands;
use serde_json::{Value, json};
use std::process::ExitCode;
use stead::agent::UNKNOWN_WINDOW_TOKENS;
use stead::agent::resolve_model_files;
use stead::core::{Price, Redactor};
use stead::model::{
    Abilities, Ability, KeyNeed, ModelName, ModelSettings, ReportedLimits, SecretRules,
    connect_with, known_models, lookup, providers,
};
use stead::workspace::ResolvedProfile;

pub(crate) async fn models(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &ModelsArgs,
) -> Result<ExitCode, CliError> {
    match &args.name {
        Some(name) => show_model(common, env, name, args).await,
        None => {
            list_models(env, args);
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn list_models(env: &ProcessEnv, args: &ModelsArgs) {
    let style = Style::stdout(env);
    if !args.json {
        outln!("{}", style.bold("Providers (use as provider:model)"));
    }
    for provider in providers() {
        let key = provider
            .key_variables
            .iter()
            .find(|name| env.get(name).is_some());
        let ready = key.is_some() || provider.key == KeyNeed::Optional;
        let set = env.get(provider.base_url_variable);
        let url = set
            .as_deref()
            .or(provider.base_url)
            .unwrap_or("set base_url");
        if args.json {
            out_json(
                &json!({"provider": provider.name, "base_url": url, "key": provider.key_variables, "ready": ready}),
            );
        } else {
            let state = match (key, provider.key, provider.key_variables.first()) {
                (Some(_), _, _) => style.good("key set"),
                (None, KeyNeed::Optional, _) => style.good("no key needed"),
                (None, KeyNeed::Required, Some(name)) => style.dim(&format!("set {name}")),
                (None, KeyNeed::Required, None) => String::new(),
            };
            outln!("  {:<20} {url:<52} {state}", provider.name);
        }
    }
    if !args.json {
        outln!(
            "  {:<20} {:<52} {}",
            "scripted, replay",
            "scripted:FILE, replay:FILE",
            style.good("no network")
        );
        outln!(
            "  {:<20} {:<52} records another model",
            "record",
            "record:FILE=provider:model"
        );
        outln!(
            "\n{}",
            style.bold(
                "Known models (dollars per million tokens; others work, at an unknown price)"
            )
        );
    }
    for (name, info) in known_models() {
        let window = info.context_tokens;
        let output = info.max_output_tokens;
        let price = info.price;
        if args.json {
            let abilities = ability_names(info.abilities);
            out_json(
                &json!({"model": name, "context_tokens": window, "max_output_tokens": output, "price": price,
                       "abilities": abilities}),
            );
        } else {
            outln!(
                "  {name:<40} {window:>9} window {output:>7} answer  {:>7.3} in  {:>7.3} out  {}",
                price.input,
                price.output,
                info.abilities
            );
        }
    }
}

/// A fact with its source.
struct SourcedFact<T> {
    value: T,
    from: &'static str,
}

const SETTINGS: &str = "settings";
const TABLE: &str = "table";
const ENDPOINT: &str = "endpoint";

/// Returns the first known value, in the order of precedence.
fn first_known<T>(
    known: impl IntoIterator<Item = (&'static str, Option<T>)>,
) -> Option<SourcedFact<T>> {
    known.into_iter().find_map(|(from, value)| {
        Some(SourcedFact {
            value: value?,
            from,
        })
    })
}

async fn show_model(
    common: &GlobalArgs,
    env: &ProcessEnv,
    name: &str,
    args: &ModelsArgs,
) -> Result<ExitCode, CliError> {
    let parsed: ModelName = name.parse()?;
    let name = parsed.to_string();
    let dir = workspace_dir(common, env)?;
    let workspace =
        open_workspace(&dir, without_model(open_options(common, env, &dir)?), env).await?;
    let config = workspace.config();
    let own = config
        .model
        .clone()
        .filter(|settings| settings.name == name);
    let settings = own.unwrap_or_else(|| ModelSettings {
        name: name.clone(),
        ..ModelSettings::default()
    });
    let table = lookup(&name);
    let unknown = settings.context_window.is_none() && table.is_none();
    let (reported, unasked) = match unknown {
        false => (ReportedLimits::default(), None),
        true => match connect_with(
            &resolve_model_files(settings.clone(), &dir),
            &|name| variable(&workspace, env, name),
            SecretRules {
                keys: &workspace.keys,
                redactor: &Redactor::default(),
            },
        ) {
            Ok(model) => (model.describe().await, None),
            Err(error) => (ReportedLimits::default(), Some(error.to_string())),
        },
    };
    let set = settings
        .abilities
        .as_ref()
        .map(|all| all.iter().copied().collect::<Abilities>());
    let facts = ModelReport {
        window: first_known([
            (SETTINGS, settings.context_window.map(u64::from)),
            (TABLE, table.map(|info| info.context_tokens.into())),
            (ENDPOINT, reported.context_window),
        ]),
        answer: first_known([
            (SETTINGS, settings.max_output_tokens.map(u64::from)),
            (TABLE, table.map(|info| info.max_output_tokens.into())),
            (ENDPOINT, reported.max_output_tokens),
        ]),
        abilities: first_known([(SETTINGS, set), (TABLE, table.map(|info| info.abilities))]),
        price: first_known([
            (
                SETTINGS,
                config.prices.get(&name).copied().or(settings.price),
            ),
            (TABLE, table.map(|info| info.price)),
        ]),
    };
    let profiles = ResolvedProfile::new(
        workspace.profiles(&*workspace.files, |_| true).await?,
        &name,
    )
    .layers;
    let profiles: Vec<String> = profiles.iter().map(ToString::to_string).collect();
    match args.json {
        true => {
            let mut facts = facts.json(&name);
            facts["profiles"] = json!(profiles);
            out_json(&facts);
        }
        false => {
            let style = Style::stdout(env);
            facts.print(&name, unasked.as_deref(), style);
            if !profiles.is_empty() {
                outln!("  {:<10} {}", "profiles", profiles.join(", "));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// What is known about one model.
struct ModelReport {
    window: Option<SourcedFact<u64>>,
    answer: Option<SourcedFact<u64>>,
    abilities: Option<SourcedFact<Abilities>>,
    price: Option<SourcedFact<Price>>,
}

impl ModelReport {
    fn json(&self, name: &str) -> Value {
        fn fact<T>(fact: &Option<SourcedFact<T>>, value: impl Fn(&T) -> Value) -> Value {
            fact.as_ref().map_or(
                Value::Null,
                |fact| json!({"value": value(&fact.value), "from": fact.from}),
            )
        }
        json!({
            "model": name,
            "context_window": fact(&self.window, |tokens| json!(tokens)),
            "max_output_tokens": fact(&self.answer, |tokens| json!(tokens)),
            "abilities": fact(&self.abilities, |abilities| json!(ability_names(*abilities))),
            "price": fact(&self.price, |price| json!(price)),
        })
    }

    fn print(&self, name: &str, unasked: Option<&str>, style: Style) {
        let row = |title: &str, known: Option<(String, &str)>, otherwise: &str| match known {
            Some((value, from)) => {
                outln!("  {title:<10} {value}  {}", style.dim(&format!("({from})")))
            }
            None => outln!("  {title:<10} {}", style.dim(otherwise)),
        };
        outln!("{}", style.bold(name));
        let unknown_window = format!(
            "unknown; {} tokens are believed to fit",
            group_thousands(UNKNOWN_WINDOW_TOKENS)
        );
        let tokens = |fact: &SourcedFact<u64>| {
            (format!("{} tokens", group_thousands(fact.value)), fact.from)
        };
        row("window", self.window.as_ref().map(tokens), &unknown_window);
        row("answer", self.answer.as_ref().map(tokens), "unknown");
        row(
            "abilities",
            self.abilities
                .as_ref()
                .map(|fact| (fact.value.to_string(), fact.from)),
            "unknown",
        );
        row(
            "price",
            self.price
                .as_ref()
                .map(|fact| (format_price(&fact.value), fact.from)),
            "unknown; set model.price",
        );
        if let Some(why) = unasked {
            outln!(
                "  {}",
                style.dim(&format!("its endpoint was not asked: {why}"))
            );
        }
    }
}

fn format_price(price: &Price) -> String {
    let cached = |name: &str, amount: Option<f64>| {
        amount.map_or(String::new(), |amount| format!(", {amount} {name}"))
    };
    let read = cached("cache read", price.cache_read);
    let write = cached("cache write", price.cache_write);
    format!(
        "${} in, ${} out{read}{write} per million tokens",
        price.input, price.output
    )
}

fn ability_names(abilities: Abilities) -> Vec<&'static str> {
    abilities.iter().map(Ability::as_str).collect()
}
