//! `stead usage`: tokens and money used, as a table and, in a terminal, as a chart.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes), the store (writes), the journal (reads), the network.

use super::args::{GlobalArgs, UsageArgs, UsageBy};
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::open_agent;
use super::print::{errln, out_json, outln};
use super::style::Style;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{
    Agent, LoggedUsage, RebuildReport, UsageGrouping, UsagePeriod, UsageRow, usage_report,
};
use stead::core::Usd;
use stead::core::counted;
use stead::workspace::ModelUse;

/// The maximum length of a bar, in characters.
const BAR_CHARS: u64 = 30;
/// The columns that the numbers of a row take.
const NUMBER_COLUMNS: usize = 54;
/// The shortest names, in terminals that have no room for the table.
const MIN_KEY_CHARS: usize = 8;
/// The columns between the table and the bars.
const BAR_GAP: usize = 2;
/// The maximum length of a name that is shown whole.
const KEY_CHARS: usize = 44;

pub(crate) async fn usage(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &UsageArgs,
) -> Result<ExitCode, CliError> {
    let agent = open_agent(common, env, ModelUse::NotNeeded).await?;
    if args.rebuild {
        return rebuild(&agent, args).await;
    }
    let period = UsagePeriod {
        since: args.since,
        until: args.until,
    };
    if let UsagePeriod {
        since: Some(since),
        until: Some(until),
    } = period
        && since > until
    {
        return Err(CliError::usage(format!(
            "--since {since} comes after --until {until}"
        )));
    }
    let log = agent.usage(agent.owner());
    let LoggedUsage {
        mut records,
        unreadable,
    } = log.read().await?;
    if unreadable > 0 {
        errln!(
            "{} cannot be read or counted; `stead usage --rebuild` rebuilds the file",
            counted(unreadable, "line")
        );
    }
    if let Some(user) = &common.user {
        records.retain(|record| record.user == *user);
    }
    let (rows, total) = usage_report(&records, args.by.into(), period, |at| log.date(at));
    if args.json {
        out_json(&json!({"by": args.by.name(), "rows": rows, "total": total}));
        return Ok(ExitCode::SUCCESS);
    }
    if rows.is_empty() {
        outln!("nothing was used");
        return Ok(ExitCode::SUCCESS);
    }
    print(
        Style::stdout(env),
        args.by.name(),
        &rows,
        &total,
        env.stdout_is_terminal.then(terminal_columns),
    );
    Ok(ExitCode::SUCCESS)
}

async fn rebuild(agent: &Arc<Agent>, args: &UsageArgs) -> Result<ExitCode, CliError> {
    let RebuildReport { made, kept } = agent.usage(agent.owner()).rebuild().await?;
    let place = agent.place().usage(agent.owner()).locate();
    match args.json {
        true => out_json(&json!({"made": made, "kept": kept, "file": place})),
        false => outln!(
            "{} rebuilt from the journals, {} kept: {place}",
            counted(made, "call"),
            counted(kept, "line")
        ),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the width of the terminal.
fn terminal_columns() -> usize {
    crossterm::terminal::size().map_or(80, |(columns, _)| usize::from(columns))
}

/// Returns how long bars may be beside a table of this width, so that no line is wrapped.
fn bar_room(columns: usize, table: usize) -> u64 {
    let room = columns.saturating_sub(table + BAR_GAP);
    (room as u64).min(BAR_CHARS)
}

/// Prints the table, with bars if there is a terminal with this many columns.
fn print(style: Style, title: &str, rows: &[UsageRow], total: &UsageRow, columns: Option<usize>) {
    let longest = columns.map_or(KEY_CHARS, key_room);
    let width = rows
        .iter()
        .map(|row| short_key(&row.key, longest).chars().count())
        .chain([title.len(), 5])
        .max()
        .unwrap_or(5);
    let head = format!(
        "{title:<width$} {:>7} {:>13} {:>7} {:>11} {:>11}",
        "calls", "input", "cached", "output", "cost"
    );
    outln!("{}", style.bold(&head));
    let bar_chars = columns
        .map(|columns| bar_room(columns, head.chars().count()))
        .filter(|chars| *chars > 0);
    let most = rows.iter().map(weight).max().unwrap_or(0);
    for row in rows {
        let bar = bar_chars.map_or(String::new(), |chars| bar(weight(row), most, chars));
        let line = format!("{}  {}", line(row, width), style.accent(&bar));
        outln!("{}", line.trim_end());
    }
    outln!("{}", style.bold(&line(total, width)));
    if total.unpriced_calls > 0 {
        outln!(
            "{}",
            style.dim(&format!(
                "+ {} at an unknown price",
                counted(total.unpriced_calls, "call")
            ))
        );
    }
}

fn line(row: &UsageRow, width: usize) -> String {
    let UsageRow {
        key,
        calls,
        usage,
        cost,
        unpriced_calls,
    } = row;
    let cost = if *cost == Usd::default() && *unpriced_calls > 0 {
        "unknown".to_owned()
    } else {
        cost.to_string()
    };
    let cached = format!("{}%", row.cached_percent());
    let input = group_thousands(usage.input_tokens);
    let output = group_thousands(usage.output_tokens);
    format!(
        "{:<width$} {calls:>7} {input:>13} {cached:>7} {output:>11} {cost:>11}",
        short_key(key, width)
    )
}

/// Returns the value of a bar: money, or tokens where the price is unknown.
fn weight(row: &UsageRow) -> u64 {
    match row.cost.nanos() {
        0 => row.usage.input_tokens + row.usage.output_tokens,
        nanos => nanos,
    }
}

/// Returns a bar in eighths of a character; a value above zero is always visible.
fn bar(value: u64, most: u64, chars: u64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = u128::from(value) * u128::from(chars * 8) / u128::from(most.max(1));
    let eighths = usize::try_from(eighths)
        .unwrap_or(0)
        .max(usize::from(value > 0));
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Returns a name of at most `longest` characters.
fn short_key(key: &str, longest: usize) -> String {
    if key.chars().count() <= longest {
        return key.to_owned();
    }
    let end = key.char_indices().nth(longest.saturating_sub(1));
    let shown = end.map_or(key, |(end, _)| &key[..end]);
    format!("{shown}…")
}

/// Returns how long names may be beside the numbers in a terminal with this many columns.
fn key_room(columns: usize) -> usize {
    columns
        .saturating_sub(NUMBER_COLUMNS)
        .clamp(MIN_KEY_CHARS, KEY_CHARS)
}

/// Returns a number with thousands separators.
pub(crate) fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let mut parts: Vec<&str> = Vec::new();
    if first > 0 {
        parts.push(&digits[..first]);
    }
    parts.extend(
        (first..digits.len())
            .step_by(3)
            .map(|at| &digits[at..at + 3]),
    );
    parts.join(",")
}

impl UsageBy {
    fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Session => "session",
            Self::Model => "model",
            Self::User => "user",
            Self::Purpose => "purpose",
        }
    }
}

impl From<UsageBy> for UsageGrouping {
    fn from(by: UsageBy) -> Self {
        match by {
            UsageBy::Day => Self::Day,
            UsageBy::Session => Self::Session,
            UsageBy::Model => Self::Model,
            UsageBy::User => Self::User,
            UsageBy::Purpose => Self::Purpose,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bars_are_as_long_as_they_should_be() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(group_thousands(number), text);
        }
        for (value, want) in [(0, ""), (1, "▏"), (50, "█"), (75, "█▌"), (100, "██")] {
            assert_eq!(bar(value, 100, 2), want, "{value}");
        }
        assert_eq!(bar(u64::MAX, u64::MAX, 2), "██");
        for (columns, want) in [(60, 0), (72, 10), (80, 18), (200, BAR_CHARS)] {
            assert_eq!(bar_room(columns, 60), want, "{columns}");
        }
    }
}
