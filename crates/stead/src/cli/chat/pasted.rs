//! Long pasted texts in the input of `stead chat`: a label stands for each, and the whole text is
//! sent.
//!
//! Effects: none.

/// The number of lines from which a pasted text is shown as a label.
const MIN_LINES: usize = 10;
/// The same for characters: a long line takes as much room.
const MIN_CHARS: usize = 2_000;

/// The long texts that were pasted, by label.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PastedTexts {
    texts: Vec<(String, String)>,
}

impl PastedTexts {
    /// Returns what is shown for a pasted text: a label if it is long, or the text itself.
    pub(super) fn shown(&mut self, text: &str) -> String {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.lines().count();
        if lines < MIN_LINES && text.chars().count() < MIN_CHARS {
            return text;
        }
        if let Some((label, _)) = self.texts.iter().find(|(_, known)| *known == text) {
            return label.clone();
        }
        let size = match lines {
            0 | 1 => format!("{} characters", text.chars().count()),
            lines => format!("{lines} lines"),
        };
        let label = self.free_label(&size);
        self.texts.push((label.clone(), text));
        label
    }

    /// Returns a label that no other text has.
    fn free_label(&self, size: &str) -> String {
        let is_free = |label: &String| self.texts.iter().all(|(known, _)| known != label);
        let numbered = (2..).map(|number| format!("[pasted {size} #{number}]"));
        std::iter::once(format!("[pasted {size}]"))
            .chain(numbered)
            .find(is_free)
            .unwrap_or_default()
    }

    /// Returns an input with the texts in place of their labels.
    pub(super) fn expanded(&self, input: &str) -> String {
        let mut out = String::new();
        let mut rest = input;
        while let Some((at, label, text)) = self.first_in(rest) {
            out.push_str(&rest[..at]);
            out.push_str(text);
            rest = &rest[at + label.len()..];
        }
        out + rest
    }

    fn first_in(&self, text: &str) -> Option<(usize, &str, &str)> {
        let found = self
            .texts
            .iter()
            .filter_map(|(label, whole)| Some((text.find(label)?, label.as_str(), whole.as_str())));
        found.min_by_key(|(at, ..)| *at)
    }

    /// Returns the length of the label that `before` ends with. It is removed whole.
    pub(super) fn label_before(&self, before: &str) -> Option<usize> {
        let labels = self.texts.iter().map(|(label, _)| label);
        labels
            .filter(|label| before.ends_with(label.as_str()))
            .map(String::len)
            .max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(count: usize) -> String {
        (1..=count).map(|line| format!("line {line}\n")).collect()
    }

    #[test]
    fn a_long_text_is_shown_as_a_label_and_sent_whole() {
        let mut pasted = PastedTexts::default();
        assert_eq!(pasted.shown("two\r\nlines"), "two\nlines");
        let long = lines(214);
        assert_eq!(pasted.shown(&long), "[pasted 214 lines]");
        assert_eq!(pasted.shown(&long), "[pasted 214 lines]");
        let other = lines(214).replace('1', "one");
        assert_eq!(pasted.shown(&other), "[pasted 214 lines #2]");
        assert_eq!(pasted.shown(&"x".repeat(5_000)), "[pasted 5000 characters]");
        let input = "see [pasted 214 lines #2] and [pasted 214 lines]!";
        assert_eq!(pasted.expanded(input), format!("see {other} and {long}!"));
        assert_eq!(pasted.expanded("[pasted 3 lines]"), "[pasted 3 lines]");
    }

    #[test]
    fn a_pasted_text_with_a_label_in_it_is_not_expanded_again() {
        let mut pasted = PastedTexts::default();
        let first = lines(20);
        pasted.shown(&first);
        let second = format!("[pasted 20 lines]\n{}", lines(29));
        assert_eq!(pasted.shown(&second), "[pasted 30 lines]");
        assert_eq!(pasted.expanded("[pasted 30 lines]"), second);
    }

    #[test]
    fn a_label_is_removed_whole() {
        let mut pasted = PastedTexts::default();
        pasted.shown(&lines(20));
        assert_eq!(pasted.label_before("a [pasted 20 lines]"), Some(17));
        assert_eq!(pasted.label_before("a [pasted 20 lines"), None);
        assert_eq!(pasted.label_before("b"), None);
    }
}
