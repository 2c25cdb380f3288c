//! Archives of conversations, where a layout keeps them: Markdown for people, JSON for programs.
//!
//! Effects: the clock, the environment, workspace files (writes), the journal (reads).

use crate::{AgentError, AgentParts};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use stead_core::{Block, JournalLine, Message, Owner, SessionId, SessionState};
use stead_vfs::{Expect, ReadRange, VPath, Vfs, VfsError};

/// The most conversations that may end in the same microsecond.
const MAX_SAME_TIMESTAMP: usize = 100;
/// The largest archive that is read to find out which session it is of.
const MAX_READ_BYTES: u64 = 64 * 1024 * 1024;

/// Why a conversation is archived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveTag {
    /// A new conversation begins.
    Manual,
    /// The conversation was compacted on request.
    Compact,
    /// The conversation was compacted because it had grown too long.
    AutoCompact,
}

impl ArchiveTag {
    fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Compact => "compact",
            Self::AutoCompact => "auto-compact",
        }
    }
}

/// An archived conversation.
#[derive(Debug, Serialize)]
struct Archive {
    conversation_id: String,
    session_key: String,
    workspace_name: String,
    started_at: Timestamp,
    ended_at: Timestamp,
    message_count: usize,
    summary: Option<String>,
    tags: Vec<&'static str>,
    messages: Vec<ArchivedMessage>,
    /// The last entry of the journal that it includes.
    seq: u64,
}

/// A message of an archive.
#[derive(Debug, Serialize)]
struct ArchivedMessage {
    timestamp: Timestamp,
    role: &'static str,
    content: String,
    tool_calls: Vec<ArchivedCall>,
    tool_call_id: Option<String>,
}

/// A tool call of an archived message.
#[derive(Debug, Serialize)]
struct ArchivedCall {
    id: String,
    name: String,
    args: Value,
}

/// The archive of conversations of a workspace.
#[derive(Debug, Clone, Copy)]
pub struct ConversationArchive<'a> {
    parts: &'a AgentParts,
}

impl<'a> ConversationArchive<'a> {
    pub(crate) fn new(parts: &'a AgentParts) -> Self {
        Self { parts }
    }

    /// Saves the conversation of a session and returns the path of the Markdown file; `None` if the
    /// layout does not keep conversations, or the conversation is empty. Saving the same point of a
    /// session twice writes it once.
    pub async fn save(
        &self,
        owner: &Owner,
        session: &SessionId,
        tag: ArchiveTag,
    ) -> Result<Option<VPath>, AgentError> {
        let Some(folder) = &self.parts.workspace.definition.paths.conversations else {
            return Ok(None);
        };
        let lines = self.parts.place.sessions(owner).read(session).await?;
        let mut state = SessionState::default();
        for line in &lines {
            state.apply(line.seq, &line.entry)?;
        }
        let workspace = self.parts.workspace.config().agent_id().to_string();
        let Some(mut archive) = archive(session, &workspace, tag, &lines, &state) else {
            return Ok(None);
        };
        let files = self.parts.place.files(owner, session, None);
        let started = archive.conversation_id.clone();
        let file =
            |id: &str, kind: &str| folder.join(&format!("{id}.{kind}")).map_err(VfsError::from);
        for attempt in 1..=MAX_SAME_TIMESTAMP {
            if attempt > 1 {
                archive.conversation_id = format!("{started}-{attempt}");
            }
            let json = file(&archive.conversation_id, "json")?;
            let text = format!("{:#}\n", serde_json::json!(archive));
            match files.write(&json, text.into(), Expect::Absent).await {
                Ok(_) => {}
                Err(VfsError::Exists(_) | VfsError::Changed(_))
                    if is_same_archive(&*files, &json, &archive).await? => {}
                Err(VfsError::Exists(_) | VfsError::Changed(_)) => continue,
                Err(error) => return Err(error.into()),
            }
            let markdown = file(&archive.conversation_id, "md")?;
            let zone = self.parts.workspace.config().timezone.as_deref();
            return match files
                .write(
                    &markdown,
                    render_markdown(&archive, zone).into(),
                    Expect::Absent,
                )
                .await
            {
                Ok(_) | Err(VfsError::Exists(_) | VfsError::Changed(_)) => Ok(Some(markdown)),
                Err(error) => Err(error.into()),
            };
        }
        Err(VfsError::Exists(file(&started, "json")?).into())
    }
}

/// Whether the file at `path` is the archive of the same session up to the same entry.
async fn is_same_archive(
    files: &dyn Vfs,
    path: &VPath,
    archive: &Archive,
) -> Result<bool, AgentError> {
    let (bytes, _) = files
        .read(
            path,
            ReadRange {
                offset: 0,
                len: MAX_READ_BYTES,
            },
        )
        .await?;
    let Ok(found) = serde_json::from_slice::<Value>(&bytes) else {
        return Ok(false);
    };
    Ok(found["session_key"] == archive.session_key && found["seq"] == archive.seq)
}

/// Returns the conversation as an archive; `None` if it is empty.
fn archive(
    session: &SessionId,
    workspace: &str,
    tag: ArchiveTag,
    lines: &[JournalLine],
    state: &SessionState,
) -> Option<Archive> {
    let times: BTreeMap<u64, Timestamp> = lines.iter().map(|line| (line.seq, line.at)).collect();
    let at = |seq: u64| times.get(&seq).copied();
    let mut messages = Vec::new();
    for turn in &state.turns {
        push_messages(&turn.message, at(turn.seq)?, &mut messages);
    }
    let last = state.turns.last()?;
    let started_at = at(state.turns.first()?.seq)?;
    let ended_at = at(last.seq)?;
    Some(Archive {
        conversation_id: ended_at.strftime("conv_%Y-%m-%dT%H-%M-%S-%6f").to_string(),
        session_key: session.to_string(),
        workspace_name: workspace.to_owned(),
        started_at,
        ended_at,
        message_count: messages.len(),
        summary: state.view().and_then(|view| view.summary.clone()),
        tags: vec![tag.as_str()],
        messages,
        seq: last.seq,
    })
}

/// Adds the archived form of `message` to `out`: one message, or one for each result of a call.
fn push_messages(message: &Message, timestamp: Timestamp, out: &mut Vec<ArchivedMessage>) {
    let plain = |role, content| ArchivedMessage {
        timestamp,
        role,
        content,
        tool_calls: Vec::new(),
        tool_call_id: None,
    };
    match message {
        Message::User { content } => out.push(plain("human", plain_text(content))),
        Message::Assistant { content } => {
            let called = |block: &Block| match block {
                Block::ToolCall(call) => Some(ArchivedCall {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    args: call.args.clone(),
                }),
                Block::Text { .. } | Block::Media(_) | Block::Thinking(_) => None,
            };
            out.push(ArchivedMessage {
                tool_calls: content.iter().filter_map(called).collect(),
                ..plain("ai", plain_text(content))
            });
        }
        Message::Tool { results } => {
            let result = |id: &str, content: &[Block]| ArchivedMessage {
                tool_call_id: Some(id.to_owned()),
                ..plain("tool", plain_text(content))
            };
            out.extend(results.iter().map(|one| result(&one.id, &one.content)));
        }
    }
}

/// Returns the text of blocks, with media by name. The layout that keeps archives has no thinking
/// in them, and calls in a field of their own.
fn plain_text(blocks: &[Block]) -> String {
    let parts = blocks.iter().filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        Block::Media(media) => Some(format!(
            "[{}]",
            media.name.as_deref().unwrap_or(&media.mime)
        )),
        Block::Thinking(_) | Block::ToolCall(_) => None,
    });
    parts.collect::<Vec<String>>().join("\n")
}

/// Returns the archive as Markdown.
fn render_markdown(archive: &Archive, timezone: Option<&str>) -> String {
    let time = |at: Timestamp| match timezone.and_then(|zone| at.in_tz(zone).ok()) {
        Some(local) => local.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        None => at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
    };
    let mut out = format!(
        "# Conversation\n\n- **ID:** {}\n- **Session:** {}\n- **Workspace:** {}\n- **Started:** {}\n- **Ended:** {}\n- **Messages:** {}\n",
        archive.conversation_id,
        archive.session_key,
        archive.workspace_name,
        time(archive.started_at),
        time(archive.ended_at),
        archive.message_count,
    );
    if let Some(summary) = &archive.summary {
        let _ = write!(out, "\n## Summary\n\n{summary}\n");
    }
    for message in &archive.messages {
        let speaker = match message.role {
            "human" => "User",
            "ai" => "Agent",
            _ => "Tool Result",
        };
        let _ = write!(out, "\n---\n\n");
        if !message.content.is_empty() || message.tool_calls.is_empty() {
            let _ = write!(
                out,
                "**[{speaker}]** {}\n\n{}\n",
                time(message.timestamp),
                message.content
            );
        }
        for call in &message.tool_calls {
            let _ = write!(
                out,
                "\n**[Tool Call: {}]** {}\n\n```json\n{:#}\n```\n",
                call.name,
                time(message.timestamp),
                call.args
            );
        }
    }
    out
}
