//! The output of running commands on a terminal, line by line as it comes.
//!
//! Effects: none.

use std::collections::BTreeMap;

/// The most lines of one call that are shown; after them only the newest.
const MAX_LINES: usize = 20;

/// The output of the running calls, as far as it was shown.
#[derive(Debug, Default)]
pub(crate) struct LiveOutput {
    calls: BTreeMap<String, CallOutput>,
}

/// The output of one call.
#[derive(Debug, Default)]
struct CallOutput {
    lines: usize,
    /// The beginning of a line whose end has not come yet.
    rest: String,
}

/// What is shown of a piece of output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShownOutput {
    /// Lines that stay.
    pub(crate) lines: Vec<String>,
    /// The newest line, which the next replaces, and its number.
    pub(crate) newest: Option<(usize, String)>,
}

impl LiveOutput {
    /// Takes a piece of the output of a call.
    pub(crate) fn push(&mut self, id: &str, text: &str) -> ShownOutput {
        let call = self.calls.entry(id.to_owned()).or_default();
        let mut shown = ShownOutput::default();
        call.rest.push_str(text);
        let rest = std::mem::take(&mut call.rest);
        let (whole, rest) = rest.rsplit_once('\n').map_or(("", &*rest), |parts| parts);
        call.rest = rest.to_owned();
        if whole.is_empty() && !text.contains('\n') {
            return shown;
        }
        for line in whole.split('\n') {
            call.lines += 1;
            if call.lines <= MAX_LINES {
                shown.lines.push(line.to_owned());
            } else {
                shown.newest = Some((call.lines, line.to_owned()));
            }
        }
        shown
    }

    /// Ends the output of a call. Returns the lines that are still to be shown.
    pub(crate) fn finish(&mut self, id: &str) -> Vec<String> {
        let Some(call) = self.calls.remove(id) else {
            return Vec::new();
        };
        let mut lines = Vec::new();
        let count = call.lines + usize::from(!call.rest.is_empty());
        if !call.rest.is_empty() && count <= MAX_LINES {
            lines.push(call.rest);
        }
        if let Some(more) = count.checked_sub(MAX_LINES).filter(|more| *more > 0) {
            lines.push(format!("… {}", stead::core::counted(more, "more line")));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_shown_wherever_the_output_is_cut() {
        let text = "one\ntwo\n\nthree";
        for at in 0..=text.len() {
            let mut output = LiveOutput::default();
            let mut lines = output.push("c1", &text[..at]).lines;
            lines.extend(output.push("c1", &text[at..]).lines);
            lines.extend(output.finish("c1"));
            assert_eq!(lines, ["one", "two", "", "three"], "cut at {at}");
        }
    }

    #[test]
    fn a_long_output_shows_its_beginning_then_its_newest_line_and_how_much_there_was() {
        let mut output = LiveOutput::default();
        let text: String = (1..=25).map(|line| format!("line {line}\n")).collect();
        let shown = output.push("c1", &text);
        assert_eq!(shown.lines.len(), MAX_LINES);
        assert_eq!(shown.newest, Some((25, "line 25".to_owned())));
        assert_eq!(output.finish("c1"), ["… 5 more lines"]);
        assert!(output.finish("c1").is_empty());
    }
}
