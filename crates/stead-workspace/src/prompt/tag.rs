//! Enclosing text of the system prompt in tags that it cannot close.
//!
//! Effects: none.

/// The tags of the prompt's structure, which enclosed text must not close.
const STRUCTURE: [&str; 9] = [
    "loaded_context",
    "agents_context",
    "memory_context",
    "domain_knowledge_context",
    "available_skills",
    "available_subagents",
    "skills",
    "skill",
    "system_reminder",
];

/// Encloses `text` in `<tag>`. Anything in it that would close this tag or one of the prompt's
/// structure is escaped.
pub fn enclose(tag: &str, text: &str) -> String {
    format!("<{tag}>\n{}\n</{tag}>", defuse_closing_tags(tag, text))
}

/// Returns `<tag>text</tag>` on one line, for short values. Markup in the text is escaped.
pub fn element(tag: &str, text: &str) -> String {
    format!("<{tag}>{}</{tag}>", escape_xml(text))
}

/// Escapes `&`, `<` and `>` for XML.
pub fn escape_xml(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn defuse_closing_tags(tag: &str, text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let (before, after) = rest.split_at(at + 1);
        out.push_str(before);
        if closes_tag(tag, &after[1..]) {
            out.push('\\');
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Whether `after`, the text after `</`, names `tag` or a tag of the prompt's structure, ignoring
/// case and blanks.
fn closes_tag(tag: &str, after: &str) -> bool {
    let name = after.trim_start();
    let begins = |tag: &str| {
        name.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
    };
    begins(tag) || STRUCTURE.into_iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_closes_its_tag_or_one_around_it() {
        for text in [
            "x </agents_context> y",
            "</AGENTS_CONTEXT>",
            "</ agents_context >",
            "</\nloaded_context>",
            "</notes_md>",
            "a</agents_context></agents_context>",
        ] {
            let enclosed = enclose("notes_md", text);
            assert_eq!(enclosed.matches("</").count(), 1, "{enclosed}");
            assert!(enclosed.ends_with("\n</notes_md>"));
        }
        assert_eq!(
            enclose("a_b", "</p> <b>bold</b> é</"),
            "<a_b>\n</p> <b>bold</b> é</\n</a_b>"
        );
        assert_eq!(element("name", "a<b>&"), "<name>a&lt;b&gt;&amp;</name>");
    }
}
