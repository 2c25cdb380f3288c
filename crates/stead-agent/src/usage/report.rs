//! Reports of usage: sums of the records of the usage log.
//!
//! Effects: none.

use super::UsageRecord;
use jiff::civil::Date;
use serde::Serialize;
use std::collections::BTreeMap;
use stead_core::{Usage, Usd};

/// What the rows of a report stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageGrouping {
    /// Each day.
    Day,
    /// Each session.
    Session,
    /// Each model.
    Model,
    /// Each user.
    User,
    /// Each purpose: answers, memory, summaries and so on.
    Purpose,
}

/// A period of days.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsagePeriod {
    /// The first day (inclusive); `None` means from the beginning.
    pub since: Option<Date>,
    /// The last day (inclusive); `None` means until now.
    pub until: Option<Date>,
}

impl UsagePeriod {
    /// Whether the period contains `day`.
    pub fn contains(&self, day: Date) -> bool {
        self.since.is_none_or(|since| day >= since) && self.until.is_none_or(|until| day <= until)
    }
}

/// One row of a report.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct UsageRow {
    /// The day, session, model, user or purpose.
    pub key: String,
    /// The number of model calls.
    pub calls: u64,
    /// The tokens.
    #[serde(flatten)]
    pub usage: Usage,
    /// The cost of the calls whose price is known.
    pub cost: Usd,
    /// The number of calls whose cost is not known.
    pub unpriced_calls: u64,
}

impl UsageRow {
    fn add(&mut self, record: &UsageRecord) {
        self.calls += 1;
        self.usage += record.usage;
        match record.cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced_calls += 1,
        }
    }

    /// The share of input tokens that came from the provider's cache, in percent.
    pub fn cached_percent(&self) -> u64 {
        (self.usage.cache_read_tokens * 100)
            .checked_div(self.usage.input_tokens)
            .unwrap_or(0)
    }
}

/// Sums up `records` and returns the rows and the total. Days are in order, other rows are sorted
/// by cost. `date` returns the day of a time.
pub fn report<'a>(
    records: impl IntoIterator<Item = &'a UsageRecord>,
    by: UsageGrouping,
    period: UsagePeriod,
    date: impl Fn(jiff::Timestamp) -> Date,
) -> (Vec<UsageRow>, UsageRow) {
    let mut rows = BTreeMap::new();
    let mut total = UsageRow {
        key: "total".to_owned(),
        ..UsageRow::default()
    };
    for record in records {
        let day = date(record.at);
        if !period.contains(day) {
            continue;
        }
        let key = match by {
            UsageGrouping::Day => day.to_string(),
            UsageGrouping::Session => record.session.clone(),
            UsageGrouping::Model => record.model.clone(),
            UsageGrouping::User => record.user.clone(),
            UsageGrouping::Purpose => record.purpose.name().to_owned(),
        };
        rows.entry(key.clone())
            .or_insert_with(|| UsageRow {
                key,
                ..UsageRow::default()
            })
            .add(record);
        total.add(record);
    }
    let mut rows: Vec<UsageRow> = rows.into_values().collect();
    if by != UsageGrouping::Day {
        let tokens = |row: &UsageRow| row.usage.input_tokens + row.usage.output_tokens;
        rows.sort_by_key(|row| std::cmp::Reverse((row.cost, tokens(row))));
    }
    (rows, total)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage::{Purpose, date_in};

    fn record(at: &str, session: &str, input_tokens: u64, cost: Option<u64>) -> UsageRecord {
        UsageRecord {
            at: at.parse().unwrap(),
            user: "u".into(),
            session: session.into(),
            run: None,
            purpose: Purpose::Answer,
            model: "a:b".into(),
            usage: Usage {
                input_tokens,
                ..Usage::default()
            },
            cost: cost.map(Usd::from_nanos),
            ms: None,
        }
    }

    #[test]
    fn days_are_those_of_the_time_zone_and_a_period_includes_both_its_ends() {
        let records = [
            record("2026-03-01T10:00:00Z", "a", 1, Some(1)),
            record("2026-03-01T23:30:00Z", "b", 2, None),
            record("2026-03-02T23:30:00Z", "a", 4, Some(9)),
        ];
        let sums = |by, period, zone: &'static str| {
            let (rows, total) = report(&records, by, period, |at| date_in(at, Some(zone)));
            let rows = rows
                .into_iter()
                .map(|row| (row.key, row.usage.input_tokens, row.cost.nanos()));
            (rows.collect::<Vec<_>>(), total.calls, total.unpriced_calls)
        };
        let row = |key: &str, tokens, nanos| (key.to_owned(), tokens, nanos);
        let all = UsagePeriod::default();
        assert_eq!(
            sums(UsageGrouping::Day, all, "UTC"),
            (vec![row("2026-03-01", 3, 1), row("2026-03-02", 4, 9)], 3, 1)
        );
        let berlin = vec![
            row("2026-03-01", 1, 1),
            row("2026-03-02", 2, 0),
            row("2026-03-03", 4, 9),
        ];
        assert_eq!(
            sums(UsageGrouping::Day, all, "Europe/Berlin"),
            (berlin, 3, 1)
        );
        assert_eq!(
            sums(UsageGrouping::Session, all, "UTC"),
            (vec![row("a", 5, 10), row("b", 2, 0)], 3, 1)
        );
        let day = Some("2026-03-02".parse().unwrap());
        let one = UsagePeriod {
            since: day,
            until: day,
        };
        assert_eq!(
            sums(UsageGrouping::Day, one, "Europe/Berlin"),
            (vec![row("2026-03-02", 2, 0)], 1, 1)
        );
        assert_eq!(
            sums(
                UsageGrouping::Model,
                UsagePeriod {
                    since: day,
                    until: None
                },
                "UTC"
            )
            .1,
            1
        );
    }
}
