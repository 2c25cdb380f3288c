//! Checking cron expressions, the schedules in settings.
//!
//! Effects: none.

use croner::parser::{CronParser, Seconds, Year};

/// Returns the problem of a cron expression, if it is not a valid one. It has five fields, from
/// minute to weekday; 0 and 7 are Sunday.
pub(crate) fn schedule_problem(text: &str) -> Option<String> {
    let fields = text.split_whitespace().count();
    if fields != 5 {
        let needed = "five are needed: minute hour day-of-month month day-of-week";
        return Some(format!("{text:?} has {fields} fields; {needed}"));
    }
    let parser = CronParser::builder()
        .seconds(Seconds::Disallowed)
        .year(Year::Disallowed)
        .build();
    parser
        .parse(text)
        .err()
        .map(|error| format!("{text:?} is no schedule: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_has_five_fields_and_sunday_has_two_numbers() {
        for good in [
            "0 9 * * *",
            "*/15 * * * *",
            "0 0 * * 0",
            "0 0 * * 7",
            "0 9 * * 1-5",
            "0 9 1,15 JAN-MAR MON",
        ] {
            assert_eq!(schedule_problem(good), None, "{good}");
        }
        let parse = |text: &str| CronParser::new().parse(text).unwrap();
        let from: jiff::Zoned = "2026-02-02T00:00[UTC]".parse().unwrap();
        let next = |text: &str| {
            parse(text)
                .find_next_occurrence(&from, false)
                .unwrap()
                .weekday()
        };
        let sunday = jiff::civil::Weekday::Sunday;
        assert_eq!((next("0 0 * * 0"), next("0 0 * * 7")), (sunday, sunday));
        for bad in [
            "",
            "* * * *",
            "* * * * * *",
            "@daily",
            "60 * * * *",
            "0 24 * * *",
            "0 0 32 * *",
            "0 0 * * 8",
            "x 0 * * *",
        ] {
            assert!(schedule_problem(bad).is_some(), "{bad} was taken");
        }
    }
}
