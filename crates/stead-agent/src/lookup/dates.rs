//! Parsing of dates and times from people and models. Days are in UTC, as in journals.
//!
//! Effects: none.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// Parses a date or a time; a date means the beginning of the day.
pub fn parse_since(text: &str) -> Option<Timestamp> {
    match day(text) {
        Some(day) => start_of_day(day),
        None => text.trim().parse().ok(),
    }
}

/// Parses a date or a time; a date means the end of the day (inclusive).
pub fn parse_until(text: &str) -> Option<Timestamp> {
    match day(text) {
        Some(day) => start_of_day(day.checked_add(1.day()).ok()?),
        None => text.trim().parse().ok(),
    }
}

fn day(text: &str) -> Option<Date> {
    // A time would parse as a date, too.
    text.trim()
        .parse()
        .ok()
        .filter(|_| !text.contains(['T', 't', ' ']))
}

fn start_of_day(day: Date) -> Option<Timestamp> {
    Some(day.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_counts_whole_and_a_moment_as_it_is() {
        let table = [
            ("2026-11-16", "2026-11-16T00:00:00Z", "2026-11-17T00:00:00Z"),
            (
                "2026-11-16T01:00:00+01:00",
                "2026-11-16T00:00:00Z",
                "2026-11-16T00:00:00Z",
            ),
        ];
        for (text, first, last) in table {
            assert_eq!(
                (parse_since(text), parse_until(text)),
                (first.parse().ok(), last.parse().ok()),
                "{text}"
            );
        }
        for text in ["yesterday", "", "2026-13-01", "2026-11-16T"] {
            assert_eq!(
                (parse_since(text), parse_until(text)),
                (None, None),
                "{text}"
            );
        }
    }
}
