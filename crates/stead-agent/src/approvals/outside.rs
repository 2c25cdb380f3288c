//! Answers about a call outside any session.

use super::Reply;
use super::answer::check;
use super::asking::offer;
use crate::gate::Granted;
use crate::hooks::Outside;
use crate::{Agent, Answer, Approvals, Called, Judged, Question};
use stead_core::{Ask, CallState, Pending, ResultStatus, ToolCall, args_hash};
use stead_tools::{Registry, Tool};
use stead_vfs::Vfs;

impl Agent {
    /// The call as it may run, or what came of it without running.
    pub(crate) async fn ask_outside(
        &self,
        call: ToolCall,
        ask: Ask,
        (tool, files, judged): (&dyn Tool, &dyn Vfs, Judged),
        (tools, hooks, approvals): (&Registry, &mut Outside, &Approvals),
    ) -> Result<Pending, Called> {
        let always = offer(tool, files, judged).await;
        let Ask {
            run,
            id,
            args_hash: hash,
            rule,
            terms,
        } = ask;
        let name = call.name.clone();
        let args = call.args.clone();
        let question = Question {
            id,
            tool: name,
            args,
            rule: rule.clone(),
            terms: terms.clone(),
            always: always.clone(),
        };
        let (answer, by) = match hooks.permission(tools, &question).await? {
            Some(answered) => answered,
            None => {
                let (answers, by) = approvals.answers(std::slice::from_ref(&question)).await;
                (answers.into_iter().next().unwrap_or(Answer::Later), by)
            }
        };
        let state = CallState::Asked {
            args_hash: hash.clone(),
            rule: rule.clone(),
            terms,
        };
        let reply = Reply {
            id: call.id.clone(),
            args_hash: hash.clone(),
            answer,
        };
        let asked = Pending {
            call: call.clone(),
            state,
        };
        let denied = |why: &str| Called::new(ResultStatus::Denied, format!("denied: {why}"));
        match check(&run, &asked, &reply, &by, jiff::Timestamp::now()) {
            None | Some(Ok(None)) => {
                return Err(denied(&format!(
                    "nobody approved it ({rule}); --approve all would"
                )));
            }
            Some(Err(error)) => return Err(denied(&error.to_string())),
            Some(Ok(Some(_))) => {}
        }
        match reply.answer {
            Answer::Yes => Ok(Pending {
                call,
                state: CallState::Approved { args_hash: hash },
            }),
            Answer::Always => {
                self.grant_outside(tool, always, (&rule, &by))
                    .await
                    .map_err(|why| denied(&why))?;
                Ok(Pending {
                    call,
                    state: CallState::Approved { args_hash: hash },
                })
            }
            Answer::Edit(args) => {
                let state = CallState::Approved {
                    args_hash: args_hash(&args),
                };
                Ok(Pending {
                    call: ToolCall { args, ..call },
                    state,
                })
            }
            Answer::Respond(words) => Err(Called::new(ResultStatus::Ok, words)),
            Answer::No { words } => {
                let why = words.map_or(String::new(), |words| format!(": {words}"));
                Err(denied(&format!(
                    "nobody approved it ({rule}){why}; --approve all would"
                )))
            }
            Answer::Later => Err(denied(&format!(
                "nobody approved it ({rule}); --approve all would"
            ))),
        }
    }

    async fn grant_outside(
        &self,
        tool: &dyn Tool,
        what: Option<Granted>,
        asked: (&str, &str),
    ) -> Result<(), String> {
        let what = what.ok_or("calls like it must be seen each time; approve it once")?;
        let kept = self
            .grant(self.owner(), &tool.spec().name, what, asked)
            .await;
        kept.map(drop).map_err(|error| error.to_string())
    }
}
