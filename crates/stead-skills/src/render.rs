//! Skills in the system prompt.
//!
//! Effects: workspace files (reads).

use crate::library::{SkillLibrary, read_skill};
use crate::{Catalogue, Skill};
use std::fmt::Write;
use std::sync::Arc;

/// The lengths in characters to which descriptions are shortened, tried in this order until all
/// skills fit.
const SHORTENED_CHARS: [usize; 5] = [usize::MAX, 400, 200, 100, 50];
/// The maximum size of one body in a prompt, in bytes.
const MAX_BODY_BYTES: usize = 32 * 1024;

/// The part of a prompt that is about skills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillPrompt {
    /// The text for the model.
    pub text: String,
    /// A description of what was left out; none if nothing was.
    pub cut: Option<String>,
}

/// A body, cut to what a prompt shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SkillBody {
    text: Arc<str>,
    more_bytes: usize,
}

/// The name of the tool, unless a surface gives it another.
const DEFAULT_TOOL_NAME: &str = stead_tools::builtin::LOAD_SKILL.name;

fn introduction(tool: &str) -> String {
    format!(
        "Skills are instructions for certain tasks. Before you begin a task that the description of one fits, call \
         {tool} with its name and do as it says."
    )
}

impl Catalogue {
    /// Returns names and descriptions in `<available_skills>`, in at most `max_bytes`; none if there
    /// are no skills. If they do not fit, descriptions are shortened first; skills are left out only
    /// if that is not enough.
    pub fn available_skills(&self, max_bytes: usize) -> Option<SkillPrompt> {
        self.available_skills_via(DEFAULT_TOOL_NAME, max_bytes)
    }

    /// Like [`Catalogue::available_skills`], for a surface that calls `load_skill` `tool`.
    pub fn available_skills_via(&self, tool: &str, max_bytes: usize) -> Option<SkillPrompt> {
        if self.is_empty() {
            return None;
        }
        for limit in SHORTENED_CHARS {
            let entries: String = self.skills().map(|skill| entry(skill, limit)).collect();
            let cut = (limit != usize::MAX).then(|| {
                format!("descriptions are shortened to {limit} characters; use {tool} to read more")
            });
            let text = listing(tool, &entries, cut.as_deref());
            if text.len() <= max_bytes {
                return Some(SkillPrompt { text, cut });
            }
        }
        Some(self.as_many_as_fit(tool, max_bytes))
    }

    /// Returns as many skills as fit, sorted by name.
    fn as_many_as_fit(&self, tool: &str, max_bytes: usize) -> SkillPrompt {
        let total = self.skills().len();
        let announce = |shown: usize| {
            format!(
                "{} of {total} skills are not shown; {tool} with any name lists them",
                total - shown
            )
        };
        // Reserve room for the longest note about what was left out.
        let frame = listing(tool, "", Some(&announce(0))).len();
        let limit = SHORTENED_CHARS.last().copied().unwrap_or_default();
        let mut entries = String::new();
        let mut shown = 0;
        for skill in self.skills() {
            let entry = entry(skill, limit);
            if frame + entries.len() + entry.len() > max_bytes {
                break;
            }
            entries.push_str(&entry);
            shown += 1;
        }
        let cut = announce(shown);
        SkillPrompt {
            text: listing(tool, &entries, Some(&cut)),
            cut: Some(cut),
        }
    }
}

impl SkillLibrary {
    /// Returns whole bodies in `<skills>`, sorted by name and in at most `max_bytes`; none if there
    /// are no skills. Each body is limited too. Bodies that have not changed are not read again.
    pub async fn full_skills(
        &self,
        catalogue: &Catalogue,
        max_bytes: usize,
    ) -> Option<SkillPrompt> {
        if catalogue.is_empty() {
            return None;
        }
        let mut bodies = String::new();
        let mut left_out = Vec::new();
        let mut cut = Vec::new();
        let mut broken = Vec::new();
        for skill in catalogue.skills() {
            // Once one body does not fit, the rest is not read.
            if !left_out.is_empty() {
                left_out.push(skill.name().to_owned());
                continue;
            }
            let SkillBody { text, more_bytes } = match self.body(skill).await {
                Ok(body) => body,
                Err(problem) => {
                    broken.push(format!("{} ({problem})", skill.name()));
                    continue;
                }
            };
            let mut block = format!(
                "<skill name=\"{}\">\n{}\n",
                escape(skill.name()),
                enclose(&text)
            );
            if more_bytes > 0 {
                let _ = writeln!(block, "[{more_bytes} more bytes; use load_skill]");
            }
            block.push_str("</skill>\n");
            if bodies.len() + block.len() > max_bytes {
                left_out.push(skill.name().to_owned());
                continue;
            }
            if more_bytes > 0 {
                cut.push(skill.name().to_owned());
            }
            bodies.push_str(&block);
        }
        let mut announced = Vec::new();
        if !left_out.is_empty() {
            announced.push(format!(
                "not shown: {}; use load_skill to read them",
                summarize_names(&left_out)
            ));
        }
        if !cut.is_empty() {
            announced.push(format!(
                "cut short: {}; use load_skill to read more",
                summarize_names(&cut)
            ));
        }
        if !broken.is_empty() {
            announced.push(format!("cannot be read: {}", summarize_names(&broken)));
        }
        let cut = (!announced.is_empty()).then(|| announced.join(". "));
        let notice = cut
            .as_ref()
            .map_or(String::new(), |cut| format!("[{}]\n", enclose(cut)));
        Some(SkillPrompt {
            text: format!("<skills>\n{bodies}{notice}</skills>"),
            cut,
        })
    }

    /// Returns the body of a skill, from the cache if possible.
    async fn body(&self, skill: &Skill) -> Result<SkillBody, String> {
        if let Some(body) = self.cached_body(skill) {
            return Ok(body);
        }
        let (_, text) = read_skill(skill).await?;
        let shown = floor_char_boundary(&text.body, MAX_BODY_BYTES);
        let body = SkillBody {
            text: text.body[..shown].into(),
            more_bytes: text.body.len() - shown,
        };
        self.cache_body(skill, body.clone());
        Ok(body)
    }
}

fn listing(tool: &str, entries: &str, notice: Option<&str>) -> String {
    let notice = notice.map_or(String::new(), |notice| format!("[{notice}]\n"));
    let introduction = introduction(tool);
    format!("{introduction}\n<available_skills>\n{entries}{notice}</available_skills>")
}

fn entry(skill: &Skill, max_chars: usize) -> String {
    let description = skill
        .header
        .description
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let description = match description.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &description[..end]),
        None => description,
    };
    let name = escape(skill.name());
    let description = escape(&description);
    format!("<skill><name>{name}</name><description>{description}</description></skill>\n")
}

/// Lists the first few names and how many more there are.
fn summarize_names(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    if names.len() > SHOWN {
        format!("{shown} and {} more", names.len() - SHOWN)
    } else {
        shown
    }
}

/// Escapes a text for XML.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Encloses a text in a tag. Closing tags in the text are escaped, so that it cannot leave the tag.
pub(crate) fn enclose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let (before, tag) = rest.split_at(at);
        out.push_str(before);
        let name = tag[2..].trim_start().as_bytes();
        let is_ours = name
            .get(..5)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"skill"));
        out.push_str(if is_ours { "<\\/" } else { "</" });
        rest = &tag[2..];
    }
    out.push_str(rest);
    out
}

/// Returns the last character boundary at or before `limit`.
pub(crate) fn floor_char_boundary(text: &str, limit: usize) -> usize {
    text.floor_char_boundary(limit)
}
