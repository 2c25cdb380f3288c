//! `stead models`: who can be asked, and at what price.

use super::args::ModelsArgs;
use super::env::Env;
use super::error::CliError;
use super::print::outln;
use super::style::Style;
use serde_json::json;
use std::process::ExitCode;
use stead::model::{KeyNeed, known_models, providers};

pub(crate) async fn models(env: &Env, args: &ModelsArgs) -> Result<ExitCode, CliError> {
    let style = Style::stdout(env);
    if !args.json {
        outln!("{}", style.bold("Providers (use as provider:model)"));
    }
    for provider in providers() {
        let key = provider.key_variables.iter().find(|name| env.get(name).is_some());
        let ready = key.is_some() || provider.key == KeyNeed::Optional;
        let set = env.get(provider.base_url_variable);
        let url = set.as_deref().or(provider.base_url).unwrap_or("set base_url");
        if args.json {
            outln!(
                "{}",
                json!({"provider": provider.name, "base_url": url, "key": provider.key_variables, "ready": ready})
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
        outln!("  {:<20} {:<52} {}", "scripted, replay", "scripted:FILE, replay:FILE", style.good("no network"));
        outln!("  {:<20} {:<52} records another model", "record", "record:FILE=provider:model");
        outln!("\n{}", style.bold("Known models (dollars per million tokens; others work, at an unknown price)"));
    }
    for (name, info) in known_models() {
        let (window, output, price) = (info.context_tokens, info.max_output_tokens, info.price);
        if args.json {
            outln!("{}", json!({"model": name, "context_tokens": window, "max_output_tokens": output, "price": price}));
        } else {
            outln!("  {name:<40} {window:>9} window  {:>7.3} in  {:>7.3} out", price.input, price.output);
        }
    }
    Ok(ExitCode::SUCCESS)
}
