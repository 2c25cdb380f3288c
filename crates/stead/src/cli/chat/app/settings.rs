//! What a person changes of how the session goes on: the permission mode, plan mode, the agent.

use super::super::state::Planning;
use super::super::transcript::Tone;
use super::App;
use super::sessions::info;
use crate::cli::error::CliError;
use crate::cli::render::plan_line;
use stead::core::{Change, PermissionMode};

impl App<'_> {
    /// Another permission mode from here on, or says which one holds.
    pub(super) async fn mode(&mut self, mode: Option<PermissionMode>) -> Result<(), CliError> {
        let Some(to) = mode else {
            let all = PermissionMode::ALL.map(PermissionMode::as_str).join(", ");
            let text = format!("mode {}; /mode MODE changes it: {all}", self.chat.info.mode);
            self.chat.note(Tone::Info, text);
            return Ok(());
        };
        // What was said last counts.
        self.args.turn.mode = None;
        self.set
            .retain(|set| !matches!(set.change, Change::Mode { .. }));
        self.change(
            Change::Mode { to },
            "/mode",
            format!("mode {to} from now on"),
        )
        .await
    }

    /// Another agent acts from here on, or says which ones there are.
    pub(super) async fn choose_agent(&mut self, name: Option<String>) -> Result<(), CliError> {
        let Some(to) = name else {
            self.chat.agents = self.agent.agents().await?;
            let row = |name: &String| {
                format!(
                    "{} {name}",
                    if *name == self.chat.info.agent {
                        "*"
                    } else {
                        " "
                    }
                )
            };
            let rows: Vec<String> = self.chat.agents.iter().map(row).collect();
            self.chat.note(
                Tone::Info,
                format!("{}\n/agent NAME lets another go on", rows.join("\n")),
            );
            return Ok(());
        };
        let given = self.args.turn.agent.take();
        let changed = self
            .change(
                Change::Agent { to: to.clone() },
                "/agent",
                format!("{to} goes on from here"),
            )
            .await;
        match &changed {
            Ok(()) => self
                .set
                .retain(|set| !matches!(set.change, Change::Agent { .. })),
            Err(_) => self.args.turn.agent = given,
        }
        self.flags_hold();
        changed
    }

    /// Plan mode on or off.
    pub(super) async fn plan(&mut self, planning: Planning) -> Result<(), CliError> {
        let begin = self.agent.session(self.id.clone()).planning();
        let (change, stage) = match (planning, &begin) {
            (Planning::On, Change::Plan { plan }) => (begin.clone(), plan.as_ref()),
            (Planning::On | Planning::Off, _) => (Change::Plan { plan: None }, None),
        };
        let words = plan_line(stage);
        self.change(change, "/plan", words).await
    }

    /// Changes how the session goes on, and says `words`.
    async fn change(&mut self, change: Change, by: &str, words: String) -> Result<(), CliError> {
        let Some(session) = &mut self.session else {
            return Ok(());
        };
        let changed = session.set(change, by, self.args.turn.wait()).await?;
        self.chat.info = info(&self.agent, session);
        self.chat.info.model = session.model().to_owned();
        self.flags_hold();
        self.chat.note(
            Tone::Info,
            if changed {
                words
            } else {
                "it is so already".to_owned()
            },
        );
        Ok(())
    }
}
