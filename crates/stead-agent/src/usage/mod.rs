//! Who used how much: one line for every call of a model.

mod rebuild;
mod record;
mod report;

pub use rebuild::RebuildReport;
pub use record::{Purpose, UsageRecord};
pub use report::{UsageGrouping, UsagePeriod, UsageRow, report};

use crate::{Agent, AgentError, Session};
use record::UsageLineFormat;
use stead_core::{Owner, UserId};

/// The date of a moment in a time zone, or where the machine is.
pub(crate) fn date_in(at: jiff::Timestamp, timezone: Option<&str>) -> jiff::civil::Date {
    let named = timezone.and_then(|zone| at.in_tz(zone).ok());
    named
        .unwrap_or_else(|| at.to_zoned(jiff::tz::TimeZone::system()))
        .date()
}

/// What was used, as far as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageLog {
    /// Every call, oldest first.
    pub records: Vec<UsageRecord>,
    /// Lines that say nothing that can be understood.
    pub unreadable: usize,
}

impl Agent {
    /// What the users of the owner's tenant used.
    pub async fn usage(&self, owner: &Owner) -> Result<UsageLog, AgentError> {
        let lines = self.parts.place.usage(owner).read().await?;
        let records: Vec<UsageRecord> = lines
            .iter()
            .filter_map(|line| UsageRecord::parse(line))
            .collect();
        let unreadable = lines.len() - records.len();
        Ok(UsageLog {
            records,
            unreadable,
        })
    }

    /// Writes down what calls of a model used.
    pub async fn log_usage(
        &self,
        owner: &Owner,
        records: &[UsageRecord],
    ) -> Result<(), AgentError> {
        let form = self.usage_line_format();
        Ok(self
            .parts
            .place
            .usage(owner)
            .append(records.iter().map(|record| record.to_line(&form)).collect())
            .await?)
    }

    /// The date of a moment where the agent is.
    pub fn date(&self, at: jiff::Timestamp) -> jiff::civil::Date {
        date_in(at, self.parts.workspace.config().timezone.as_deref())
    }

    /// How lines are written: where the layout has a file of its own, also with the names that are
    /// usual there.
    fn usage_line_format(&self) -> UsageLineFormat {
        let config = self.parts.workspace.config();
        match &self.parts.workspace.definition.paths.usage {
            Some(_) => UsageLineFormat::Openpaw {
                workspace: config.agent_id().to_string(),
            },
            None => UsageLineFormat::Stead,
        }
    }
}

impl Session {
    /// The user that its calls are counted for.
    pub(crate) fn user(&self) -> &UserId {
        &self.owner.user
    }
}
