//! The usage log: one line for every call of a model.
//!
//! Effects: the environment, the store (writes).

mod rebuild;
mod record;
mod report;

pub use rebuild::RebuildReport;
pub use record::{Purpose, UsageRecord};
pub use report::{UsageGrouping, UsagePeriod, UsageRow, report};

use crate::{AgentError, AgentParts};
use record::UsageLineFormat;
use std::sync::Arc;
use stead_core::Owner;
use stead_place::Place;
use stead_store::LineLog;

/// Returns the date of `at` in `timezone`, or in the time zone of the machine if there is none.
pub(crate) fn date_in(at: jiff::Timestamp, timezone: Option<&str>) -> jiff::civil::Date {
    let named = timezone.and_then(|zone| at.in_tz(zone).ok());
    named
        .unwrap_or_else(|| at.to_zoned(jiff::tz::TimeZone::system()))
        .date()
}

/// The records of a usage log.
#[derive(Debug, Clone, PartialEq)]
pub struct LoggedUsage {
    /// Every call, oldest first.
    pub records: Vec<UsageRecord>,
    /// The number of lines that could not be parsed.
    pub unreadable: usize,
}

/// The usage log of a tenant, as one of its users sees it.
#[derive(Debug, Clone)]
pub struct UsageLog {
    lines: Arc<dyn LineLog>,
    /// The place of the sessions, which only a rebuild opens.
    place: Arc<dyn Place>,
    owner: Owner,
    format: UsageLineFormat,
    timezone: Option<String>,
}

impl UsageLog {
    pub(crate) fn new(parts: &AgentParts, owner: &Owner) -> Self {
        let config = parts.workspace.config();
        // Where the layout has a usage file of its own, lines also have the names usual there.
        let format = match &parts.workspace.definition.paths.usage {
            Some(_) => UsageLineFormat::Openpaw {
                workspace: config.agent_id().to_string(),
            },
            None => UsageLineFormat::Stead,
        };
        Self {
            lines: parts.place.usage(owner),
            place: parts.place.clone(),
            owner: owner.clone(),
            format,
            timezone: config.timezone.clone(),
        }
    }

    /// Reads the whole log.
    pub async fn read(&self) -> Result<LoggedUsage, AgentError> {
        let lines = self.lines.read().await?;
        let records: Vec<UsageRecord> = lines
            .iter()
            .filter_map(|line| UsageRecord::parse(line))
            .collect();
        let unreadable = lines.len() - records.len();
        Ok(LoggedUsage {
            records,
            unreadable,
        })
    }

    /// Appends the usage of model calls.
    pub async fn append(&self, records: &[UsageRecord]) -> Result<(), AgentError> {
        let lines = records.iter().map(|record| record.to_line(&self.format));
        Ok(self.lines.append(lines.collect()).await?)
    }

    /// Returns the date of `at` in the time zone of the agent.
    pub fn date(&self, at: jiff::Timestamp) -> jiff::civil::Date {
        date_in(at, self.timezone.as_deref())
    }
}
