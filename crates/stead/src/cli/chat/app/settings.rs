//! Changing settings of the session in `stead chat`: permission mode, plan mode, the agent.
//!
//! Effects: the clock, workspace files (reads), the store (writes), the journal (reads).

use super::super::state::PlanModeSwitch;
use super::super::transcript::Tone;
use super::App;
use super::sessions::session_info;
use crate::cli::error::CliError;
use crate::cli::render::plan_line;
use stead::core::{Command, PermissionMode, SessionChange};

impl App<'_> {
    /// Changes the permission mode, or shows it.
    pub(super) async fn set_mode(&mut self, mode: Option<PermissionMode>) -> Result<(), CliError> {
        let Some(to) = mode else {
            let all = PermissionMode::ALL.map(PermissionMode::as_str).join(", ");
            let text = format!("mode {}; /mode MODE changes it: {all}", self.chat.info.mode);
            self.chat.note(Tone::Info, text);
            return Ok(());
        };
        // The last change wins.
        self.args.turn.mode = None;
        self.session_changes
            .retain(|set| !matches!(set.change, SessionChange::Mode { .. }));
        self.apply_change(
            SessionChange::mode(to),
            "/mode",
            format!("mode {to} from now on"),
        )
        .await
    }

    /// Switches to another agent, or lists the agents.
    pub(super) async fn set_agent(&mut self, name: Option<String>) -> Result<(), CliError> {
        let Some(to) = name else {
            self.chat.agents = self.agent.agents().switchable(self.agent.owner()).await?;
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
                format!("{}\n/agent NAME switches to another", rows.join("\n")),
            );
            return Ok(());
        };
        let given = self.args.turn.agent.take();
        let changed = self
            .apply_change(
                SessionChange::Agent { to: to.clone() },
                "/agent",
                format!("switched to {to}"),
            )
            .await;
        match &changed {
            Ok(()) => self
                .session_changes
                .retain(|set| !matches!(set.change, SessionChange::Agent { .. })),
            Err(_) => self.args.turn.agent = given,
        }
        self.apply_flags();
        changed
    }

    /// Turns plan mode on or off.
    pub(super) async fn set_plan_mode(&mut self, planning: PlanModeSwitch) -> Result<(), CliError> {
        let begin = self.view.plan_mode_change();
        let (change, stage) = match (planning, &begin) {
            (PlanModeSwitch::On, SessionChange::Plan { plan }) => (begin.clone(), plan.as_ref()),
            (PlanModeSwitch::On | PlanModeSwitch::Off, _) => {
                (SessionChange::Plan { plan: None }, None)
            }
        };
        let words = plan_line(stage);
        self.apply_change(change, "/plan", words).await
    }

    /// Changes settings of the session, and shows `words`.
    async fn apply_change(
        &mut self,
        change: SessionChange,
        by: &str,
        words: String,
    ) -> Result<(), CliError> {
        let before = self.view.state().seq;
        let set = Command::Set {
            changes: vec![change],
            by: by.to_owned(),
        };
        let receipt = self.session.send(set).await?;
        self.catch_up(receipt.seq).await?;
        self.chat.info = session_info(&self.agent, &self.view);
        self.apply_flags();
        let changed = self.view.state().seq != before;
        let words = match (receipt.seq, changed) {
            (None, _) => format!("{words}, once the run of another process has ended"),
            (Some(_), true) => words,
            (Some(_), false) => "nothing to change".to_owned(),
        };
        self.chat.note(Tone::Info, words);
        Ok(())
    }
}
