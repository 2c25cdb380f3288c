//! Answers about a call outside any session.

use super::ApprovalReply;
use super::answer::check_reply;
use super::grants::AskReason;
use super::question::offer_grant;
use crate::hooks::SessionlessHooks;
use crate::{
    ApprovalAnswer, ApprovalPolicy, ApprovalQuestion, CallFacts, NewGrant, Sessionless,
    SessionlessResult,
};
use stead_core::{Ask, CallState, PendingCall, ResultStatus, ToolCall, args_hash};
use stead_gate::GrantScope;
use stead_tools::{PreparedCall, Registry};
use stead_vfs::Vfs;

impl Sessionless {
    /// Returns the call if it was approved, or else its result.
    pub(crate) async fn ask(
        &self,
        call: ToolCall,
        ask: Ask,
        (prepared, files, judged): (&PreparedCall, &dyn Vfs, CallFacts),
        (tools, hooks, approvals): (&Registry, &mut SessionlessHooks, &ApprovalPolicy),
    ) -> Result<PendingCall, SessionlessResult> {
        let always = offer_grant(prepared, files, judged).await;
        let Ask {
            run,
            id,
            args_hash: hash,
            rule,
            rules,
            terms,
        } = ask;
        let name = call.name.clone();
        let args = call.args.clone();
        let question = ApprovalQuestion {
            id,
            tool: name,
            args,
            rule: rule.clone(),
            terms: terms.clone(),
            always_scope: always.clone(),
        };
        let (answer, by) = match hooks.permission_from_hooks(tools, &question).await? {
            Some(answered) => answered,
            None => {
                let (answers, by) = approvals.answers(std::slice::from_ref(&question)).await;
                (
                    answers.into_iter().next().unwrap_or(ApprovalAnswer::Later),
                    by,
                )
            }
        };
        let state = CallState::Asked {
            args_hash: hash.clone(),
            rule: rule.clone(),
            rules: rules.clone(),
            terms,
        };
        let reply = ApprovalReply {
            id: call.id.clone(),
            args_hash: hash.clone(),
            answer,
        };
        let asked = PendingCall {
            call: call.clone(),
            state,
        };
        let denied =
            |why: &str| SessionlessResult::new(ResultStatus::Denied, format!("denied: {why}"));
        match check_reply(&run, &asked, &reply, &by, jiff::Timestamp::now()) {
            None | Some(Ok(None)) => {
                return Err(denied(&format!(
                    "nobody approved it ({rule}); --approve all would"
                )));
            }
            Some(Err(error)) => return Err(denied(&error.to_string())),
            Some(Ok(Some(_))) => {}
        }
        match reply.answer {
            ApprovalAnswer::Yes => Ok(PendingCall {
                call,
                state: CallState::Approved { args_hash: hash },
            }),
            ApprovalAnswer::Always => {
                let asked = AskReason {
                    rules,
                    reason: rule,
                };
                self.grant(&prepared.spec().name, always, &asked, &by)
                    .await
                    .map_err(|why| denied(&why))?;
                Ok(PendingCall {
                    call,
                    state: CallState::Approved { args_hash: hash },
                })
            }
            ApprovalAnswer::Edit(args) => {
                let state = CallState::Approved {
                    args_hash: args_hash(&args),
                };
                Ok(PendingCall {
                    call: ToolCall { args, ..call },
                    state,
                })
            }
            ApprovalAnswer::Respond(words) => Err(SessionlessResult::new(ResultStatus::Ok, words)),
            ApprovalAnswer::No { reason: words } => {
                let why = words.map_or(String::new(), |words| format!(": {words}"));
                Err(denied(&format!(
                    "nobody approved it ({rule}){why}; --approve all would"
                )))
            }
            ApprovalAnswer::Later => Err(denied(&format!(
                "nobody approved it ({rule}); --approve all would"
            ))),
        }
    }

    async fn grant(
        &self,
        tool: &str,
        what: Option<GrantScope>,
        asked: &AskReason,
        by: &str,
    ) -> Result<(), String> {
        let what = what.ok_or("calls like it must be seen each time; approve it once")?;
        let new = NewGrant {
            tool,
            what,
            asked,
            by,
        };
        let kept = self.agent.grants(&self.owner).add(new).await;
        kept.map(drop).map_err(|error| error.to_string())
    }
}
